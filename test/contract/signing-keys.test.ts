import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { FilesystemSigningKeys } from '../../src/adapters/signing-keys-filesystem/filesystem-signing-keys.ts'
import { Unavailable } from '../../src/oci/errors.ts'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { projectRoot } from '../support/basics/test-project.ts'
import { MemorySigningKeys } from '../support/identity/memory-signing-keys.ts'
import { keyNamed, signingKeysContract } from './signing-keys.ts'

const temporaryFolder = useTemporaryFolders('keys')
const newFolder = () => join(temporaryFolder(), 'identity')

signingKeysContract('filesystem', async () => {
  const folder = newFolder()
  return { keys: new FilesystemSigningKeys(folder), reopen: () => new FilesystemSigningKeys(folder) }
})

signingKeysContract('memory', async () => {
  const keys = new MemorySigningKeys()
  return { keys, reopen: () => keys }
})

/** A folder with one good key, and what else a test puts there. */
async function folderWith(name: string, content: string): Promise<string> {
  const folder = newFolder()
  await new FilesystemSigningKeys(folder).add(keyNamed('one'))
  await Bun.write(join(folder, name), content)
  return folder
}

describe('signing keys, filesystem', () => {
  test('only their owner can read the keys and their folder, whatever the umask is', async () => {
    const folder = newFolder()
    const umask = process.umask(0)
    await new FilesystemSigningKeys(folder).add(keyNamed('one')).finally(() => process.umask(umask))

    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(statSync(join(folder, 'one.jwk.json')).mode & 0o777).toBe(0o600)
  })

  test('leave nothing but the keys behind, also if one cannot be written', async () => {
    const folder = newFolder()
    const keys = new FilesystemSigningKeys(folder)
    for (const kid of ['one', 'other']) await keys.add(keyNamed(kid))
    await keys.remove('one')
    // Nothing can be renamed to the name of a folder.
    mkdirSync(join(folder, 'one.jwk.json'))

    expect(await errorOf(keys.add(keyNamed('one')))).toBeInstanceOf(Unavailable)
    expect(readdirSync(folder).toSorted()).toEqual(['one.jwk.json', 'other.jwk.json'])
  })

  test.each(['half.new', 'signing-key.json', 'README', '.one.jwk.json.swp'])(
    'a file %p that is left by a crash or is foreign is not a key, and disturbs nothing',
    async (name) => {
      const folder = await folderWith(name, '{"kid":"ha')
      const keys = new FilesystemSigningKeys(folder)
      await keys.add(keyNamed('two'))

      expect((await keys.list()).map(({ kid }) => kid)).toEqual(['one', 'two'])
      expect(existsSync(join(folder, name))).toBe(true)
    },
  )

  const { kid: _kid, ...nameless } = keyNamed('two')
  const { createdAt: _at, ...ageless } = keyNamed('two')
  const damaged: Readonly<Record<string, string>> = {
    nothing: '',
    'the first half of a key': JSON.stringify(keyNamed('two')).slice(0, 40),
    'no JSON': 'no JSON at all',
    null: 'null',
    'a list': '[]',
    'no name': JSON.stringify(nameless),
    'no age': JSON.stringify(ageless),
    'an age that is no number': JSON.stringify({ ...ageless, createdAt: '1' }),
    'no key': JSON.stringify({ ...keyNamed('two'), privateJwk: null }),
    'another key than its name says': JSON.stringify(keyNamed('one')),
  }

  test('a damaged key file makes the keys unavailable: it is neither skipped nor changed', async () => {
    for (const [what, content] of Object.entries(damaged)) {
      const folder = await folderWith('two.jwk.json', content)

      expect([what, await errorOf(new FilesystemSigningKeys(folder).list())]).toEqual([what, expect.any(Unavailable)])
      expect(await Bun.file(join(folder, 'two.jwk.json')).text()).toBe(content)
      expect(existsSync(join(folder, 'one.jwk.json'))).toBe(true)
    }
    // The control: the files of these folders can be read if they are good.
    const folder = await folderWith('two.jwk.json', JSON.stringify(keyNamed('two')))
    expect(await new FilesystemSigningKeys(folder).list()).toEqual([keyNamed('one'), keyNamed('two')])
  })

  test.each(['../evil', 'a/b', '', '.', 'a.b', 'x'.repeat(65), 'a\0'])(
    'the name %j makes no file, in the folder or outside',
    async (kid) => {
      const folder = newFolder()
      const keys = new FilesystemSigningKeys(folder)
      await keys.add(keyNamed('one'))

      expect(await errorOf(keys.add(keyNamed(kid)))).toBeInstanceOf(Unavailable)
      expect(await errorOf(keys.remove(kid))).toBeInstanceOf(Unavailable)
      expect(readdirSync(join(folder, '..'), { recursive: true })).toEqual(['identity', 'identity/one.jwk.json'])
    },
  )

  test('a folder that cannot be read makes the keys unavailable and does not count as empty', async () => {
    const path = join(temporaryFolder(), 'identity')
    await Bun.write(path, 'a file in its place')

    expect(await errorOf(new FilesystemSigningKeys(path).list())).toBeInstanceOf(Unavailable)
  })
})

function canTrace(): Need {
  const strace = Bun.which('strace')
  if (strace === null) return { isMet: false, reason: 'strace is not installed (apt-get install strace)' }
  const { success, stderr } = Bun.spawnSync([strace, '-e', 'trace=none', 'true'], { stdout: 'ignore' })
  return { isMet: success, reason: `strace may not trace here: ${stderr.toString().trim()}` }
}

/** What a separate process syncs, renames and removes, in order, when it runs `operation` on the keys of the folder. */
function callsOf(folder: string, operation: string): string[] {
  const adapter = join(projectRoot, 'src/adapters/signing-keys-filesystem/filesystem-signing-keys.ts')
  const script = `const { FilesystemSigningKeys } = await import(${JSON.stringify(adapter)})
    const keys = new FilesystemSigningKeys(${JSON.stringify(folder)})
    ${operation}`
  const log = join(temporaryFolder(), 'trace')
  const calls = 'trace=fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat'
  const strace = ['strace', '-f', '-y', '-e', calls, '-o', log]
  const { exitCode, stderr } = Bun.spawnSync([...strace, process.execPath, '-e', script])
  expect([exitCode, stderr.toString()]).toEqual([0, ''])
  const lines = readFileSync(log, 'utf8').split('\n')
  return lines.flatMap((line) => {
    const [, verb, rest = ''] = /\b(f(?:data)?sync|rename|unlink)\w*\((.*)\) += 0$/.exec(line) ?? []
    if (verb === undefined || !rest.includes(dirname(folder))) return []
    const paths = rest.match(/(?<=[<"])\/[^>"]+/g) ?? []
    return [`${verb} ${(paths.at(-1) ?? '').replace(dirname(folder), '').replace(/[0-9a-f-]{36}\.new/, '*.new')}`]
  })
}

describe('a signing key outlives a power cut:', () => {
  testNeeding(
    canTrace(),
    'its file is synced before it has its name, its folder after, the new folder itself too',
    async () => {
      const calls = callsOf(newFolder(), `await keys.add(${JSON.stringify(keyNamed('one'))})`)

      expect(calls).toEqual(['fsync ', 'fsync /identity/*.new', 'rename /identity/one.jwk.json', 'fsync /identity'])
    },
  )

  testNeeding(canTrace(), 'one that was removed stays so', async () => {
    const folder = newFolder()
    await new FilesystemSigningKeys(folder).add(keyNamed('one'))

    expect(callsOf(folder, "await keys.remove('one')")).toEqual(['unlink /identity/one.jwk.json', 'fsync /identity'])
  })
})
