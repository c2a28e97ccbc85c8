import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import { hashApiKey } from '../../../src/identity/api-key-secrets.ts'
import { testNeeding } from '../../support/basics/needs.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import {
  type CommandRun,
  runAtTerminal,
  runBerthAtTerminal,
  type Typing,
  terminal,
} from '../../support/server/berth-command.ts'
import { expectMisuse, openWorkplace, toArguments } from './workplace.ts'

const newFolder = useTemporaryFolders('command-secrets')
const password = 'canary pass word'

/** A data folder with the user bob in it. */
async function openBob() {
  const place = await openWorkplace(newFolder())
  await place.run('user add bob --account home --role admin')
  const hashOf = async (name: string) => {
    const store = await SqlMetadataStore.open(new SqliteDatabase(join(place.folder, 'data/metadata.sqlite')))
    return (await store.users.find(name).finally(() => store.close()))?.passwordHash
  }
  const hasPassword = async (name: string) => Bun.password.verify(password, (await hashOf(name)) ?? '')
  const type = (typing: Typing, words: string) => runBerthAtTerminal(toArguments([words]), typing, {}, place.folder)
  return { ...place, hashOf, hasPassword, type }
}

function findSecrets({ stdout, stderr }: CommandRun, secrets: readonly string[]): string[] {
  return secrets.filter((secret) => (stdout + stderr).includes(secret))
}

describe('secrets', () => {
  test('are in no output, except that the creation of a key prints the key', async () => {
    const { folder, run, runWith, hashOf, hasPassword } = await openBob()
    const creation = await run('key create bob --name ci')
    const key = creation.stdout.trim()
    const later = [
      await runWith(password, 'user passwd bob --password-stdin'),
      await runWith(password, 'user add eve --account home --password-stdin'),
      await runWith(password, 'user add eve --account home --password-stdin'),
      await runWith(`${password}\n${password}`, 'user passwd bob --password-stdin'),
    ]
    const hash = (await hashOf('bob')) ?? ''
    expect([await hasPassword('bob'), await hasPassword('eve')]).toEqual([true, true])
    for (const words of [
      ...['user list', 'user disable eve', 'user enable eve', 'user roles eve reader', 'key list bob'],
      ...['account list', 'account show home', 'signing-key list'],
    ]) {
      later.push(await run(words), await run(`${words} --json`))
    }
    later.push(await run('signing-key rotate'), await run('key revoke bob ci'), await run('config'))
    const identityFolder = join(folder, 'data/identity')
    const privateParts = readdirSync(identityFolder).map(
      (name): string => JSON.parse(readFileSync(join(identityFolder, name), 'utf8')).privateJwk.d,
    )
    expect(privateParts.map((part) => part.length > 20)).toEqual([true, true])

    const secrets = [password, hash, key, hashApiKey(key), ...privateParts]
    expect(later.length).toBe(4 + 2 * 8 + 3)
    for (const output of later) expect([output, findSecrets(output, secrets)]).toEqual([output, []])
    expect(findSecrets({ ...creation, stdout: '' }, secrets)).toEqual([])
    // The control: the key is found where it is.
    expect(findSecrets(creation, secrets)).toEqual([key])
  })

  test('that are given as arguments are refused with code 2, and not printed', async () => {
    const { run, hashOf } = await openBob()
    for (const [words, ...more] of [
      ['user add bob', password],
      ['user add bob --password', password],
      ['user add bob', `--password=${password}`],
      ['user add bob', `--password-stdin=it's\n${password}`],
      ['user passwd bob', password],
      ['key create bob --name x', password],
      ['key create bob --name x', `--key=${password}`],
    ] as const) {
      const output = await run(words, ...more)
      expectMisuse(output, '')
      expect([more, findSecrets(output, [password])]).toEqual([more, []])
    }
    expect(await hashOf('bob')).toBeUndefined()
  })
})

describe('at a terminal', () => {
  const typed = (name: string, again = password): Typing => [
    [`Password for ${name}: `, `${password}\r`],
    ['Repeat the password: ', `${again}\r`],
  ]

  testNeeding(terminal, 'the harness shows what is echoed (control)', async () => {
    const typing: Typing = [['Say: ', 'visible words\r']]
    const words = "printf 'Say: '; head -n 1 > /dev/null; exit 7"
    const { exitCode, screen } = await runAtTerminal(words, typing, {}, newFolder())
    expect([exitCode, screen.includes('visible words')]).toEqual([7, true])
  })

  testNeeding(terminal, 'passwd asks twice without echo, and switches the echo on again', async () => {
    const { folder, hasPassword } = await openBob()
    const main = join(import.meta.dir, '../../../src/main.ts')
    const words = `'${process.execPath}' '${main}' user passwd bob; stty -a; stty -echo; stty -a`
    const { screen } = await runAtTerminal(words, typed('bob'), {}, folder)
    const [asked = '', after = '', control = ''] = screen.split(/speed \d+ baud/)
    expect(asked).toContain('set the password of bob')
    expect([asked.includes(password), await hasPassword('bob')]).toEqual([false, true])
    expect([/\sicanon\s/.test(after), /\secho\s/.test(after)]).toEqual([true, true])
    // The control: a terminal without echo looks different.
    expect([/\sicanon\s/.test(control), /\secho\s/.test(control)]).toEqual([true, false])
  })

  testNeeding(terminal, 'passwd asks also with --password-stdin, and add only with --password', async () => {
    const { hasPassword, hashOf, type } = await openBob()
    const asked = [
      await type(typed('bob'), 'user passwd bob --password-stdin'),
      await type(typed('eve'), 'user add eve --account home --password'),
    ]
    for (const { exitCode, screen } of asked) expect([exitCode, screen.includes(password)]).toEqual([0, false])
    expect([await hasPassword('bob'), await hasPassword('eve')]).toEqual([true, true])

    const silent = await type([], 'user add kim --account home')
    expect([silent.exitCode, silent.screen.includes('Password for')]).toEqual([0, false])
    expect(await hashOf('kim')).toBeUndefined()
  })
})
