import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import { hashApiKey } from '../../../src/identity/api-keys.ts'
import { testNeeding } from '../../support/basics/needs.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import type { CommandRun } from '../../support/server/berth-command.ts'
import { runAtTerminal, runBerthAtTerminal, type Typing, terminal } from '../../support/server/berth-command.ts'
import { runBerthHere, runBerthHereWith } from '../../support/server/berth-here.ts'

const newFolder = useTemporaryFolders('command-secrets')
const password = 'canary pass word'

/** A data folder with the user bob in it. */
async function newWorkplace() {
  const folder = newFolder()
  const run = (...args: string[]) => runBerthHere(args, {}, folder)
  const told = (input: string, ...args: string[]) => runBerthHereWith(input, args, {}, folder)
  const typed = (typing: Typing, ...args: string[]) => runBerthAtTerminal(args, typing, {}, folder)
  await run('user', 'add', 'bob', '--account', 'home', '--role', 'admin')
  return { folder, run, told, typed }
}

async function passwordHashOf(folder: string, name: string): Promise<string | undefined> {
  const store = await SqlMetadataStore.open(new SqliteDatabase(join(folder, 'data/metadata.sqlite')))
  try {
    return (await store.users.find(name))?.passwordHash
  } finally {
    await store.close()
  }
}

function findSecrets({ stdout, stderr }: Pick<CommandRun, 'stdout' | 'stderr'>, secrets: readonly string[]): string[] {
  return secrets.filter((secret) => (stdout + stderr).includes(secret))
}

describe('secrets', () => {
  test('are in no output but the key in that of its making', async () => {
    const { folder, run, told } = await newWorkplace()
    const creation = await run('key', 'create', 'bob', '--name', 'ci')
    const key = creation.stdout.trim()
    const later = [
      await told(password, 'user', 'passwd', 'bob', '--password-stdin'),
      await told(password, 'user', 'add', 'eve', '--account', 'home', '--password-stdin'),
      await told(password, 'user', 'add', 'eve', '--account', 'home', '--password-stdin'),
      await told(`${password}\n${password}`, 'user', 'passwd', 'bob', '--password-stdin'),
    ]
    const hash = await passwordHashOf(folder, 'bob')
    if (hash === undefined) throw new Error('bob has no password')
    expect(await Bun.password.verify(password, hash)).toBe(true)
    for (const args of [
      ['user', 'list'],
      ['user', 'disable', 'eve'],
      ['user', 'enable', 'eve'],
      ['user', 'roles', 'eve', 'reader'],
      ['key', 'list', 'bob'],
      ['account', 'list'],
      ['account', 'show', 'home'],
      ['signing-key', 'list'],
    ]) {
      later.push(await run(...args), await run(...args, '--json'))
    }
    later.push(await run('signing-key', 'rotate'), await run('key', 'revoke', 'bob', 'ci'), await run('config'))
    const identityFolder = join(folder, 'data/identity')
    const privateParts = readdirSync(identityFolder).map(
      (name): string => JSON.parse(readFileSync(join(identityFolder, name), 'utf8')).privateJwk.d,
    )
    expect(privateParts).toHaveLength(2)
    for (const part of privateParts) expect(part.length).toBeGreaterThan(20)

    const secrets = [password, hash, key, hashApiKey(key), ...privateParts]
    expect(later.length).toBe(4 + 2 * 8 + 3)
    for (const output of later) expect([output, findSecrets(output, secrets)]).toEqual([output, []])
    expect(findSecrets({ ...creation, stdout: '' }, secrets)).toEqual([])
    // The control: what finds nothing above does find the key where it is.
    expect(findSecrets(creation, secrets)).toEqual([key])
  })

  test.each([
    [['user', 'add', 'bob', password]],
    [['user', 'add', 'bob', '--password', password]],
    [['user', 'add', 'bob', `--password=${password}`]],
    [['user', 'add', 'bob', `--password-stdin=it's\n${password}`]],
    [['user', 'passwd', 'bob', password]],
    [['key', 'create', 'bob', '--name', 'x', password]],
    [['key', 'create', 'bob', '--name', 'x', `--key=${password}`]],
  ])('given as an argument (%j) are refused with code 2, and not repeated', async (args) => {
    const { folder, run } = await newWorkplace()
    const output = await run(...args)
    expect([output.exitCode, output.stdout]).toEqual([2, ''])
    expect(output.stderr).toMatch(/^berth: .*\n$/)
    expect(findSecrets(output, [password])).toEqual([])
    expect(await passwordHashOf(folder, 'bob')).toBeUndefined()
  })
})

describe('at a terminal', () => {
  const twice: Typing = [
    ['Password for bob: ', `${password}\r`],
    ['Repeat the password: ', `${password}\r`],
  ]

  testNeeding(terminal, 'the harness shows what is echoed', async () => {
    const typing: Typing = [['Say: ', 'visible words\r']]
    const { exitCode, screen } = await runAtTerminal(
      "printf 'Say: '; head -n 1 > /dev/null; exit 7",
      typing,
      {},
      newFolder(),
    )
    expect(exitCode).toBe(7)
    expect(screen).toContain('visible words')
  })

  for (const args of [[], ['--password-stdin']]) {
    testNeeding(terminal, `passwd ${args.join()} asks twice without echo, and keeps what was typed`, async () => {
      const { folder, typed } = await newWorkplace()
      const { exitCode, screen } = await typed(twice, 'user', 'passwd', 'bob', ...args)
      expect(exitCode).toBe(0)
      expect(screen).toContain('set the password of bob')
      expect(screen).not.toContain(password)
      expect(await Bun.password.verify(password, (await passwordHashOf(folder, 'bob')) ?? '')).toBe(true)
    })
  }

  testNeeding(terminal, 'add asks only with --password', async () => {
    const { folder, typed } = await newWorkplace()
    const typing: Typing = twice.map(([after, text]) => [after.replace('bob', 'eve'), text])
    const { exitCode, screen } = await typed(typing, 'user', 'add', 'eve', '--account', 'home', '--password')
    expect([exitCode, screen.includes(password)]).toEqual([0, false])
    expect(await Bun.password.verify(password, (await passwordHashOf(folder, 'eve')) ?? '')).toBe(true)

    const silent = await typed([], 'user', 'add', 'kim', '--account', 'home')
    expect([silent.exitCode, silent.screen.includes('Password for')]).toEqual([0, false])
    expect(await passwordHashOf(folder, 'kim')).toBeUndefined()
  })

  testNeeding(terminal, 'two that differ, and an interrupt, change nothing', async () => {
    const { folder, typed } = await newWorkplace()
    const [first] = twice
    if (first === undefined) throw new Error('nothing is typed')
    const differ = await typed([first, ['Repeat the password: ', 'something else\r']], 'user', 'passwd', 'bob')
    expect([differ.exitCode, differ.screen.includes('the two passwords are different')]).toEqual([1, true])
    const interrupted = await typed([['Password for bob: ', `${password}\u0003`]], 'user', 'passwd', 'bob')
    expect([interrupted.exitCode, interrupted.screen.includes('berth: interrupted')]).toEqual([1, true])
    expect(differ.screen + interrupted.screen).not.toContain(password)
    expect(await passwordHashOf(folder, 'bob')).toBeUndefined()
  })

  testNeeding(terminal, 'the echo is on again afterwards', async () => {
    const { folder } = await newWorkplace()
    const main = join(import.meta.dir, '../../../src/main.ts')
    const words = `'${process.execPath}' '${main}' user passwd bob; stty -a; stty -echo; stty -a`
    const { screen } = await runAtTerminal(words, twice, {}, folder)
    const [, after = '', control = ''] = screen.split(/speed \d+ baud/)
    expect([/\sicanon\s/.test(after), /\secho\s/.test(after)]).toEqual([true, true])
    // The control: a terminal without echo looks different.
    expect([/\sicanon\s/.test(control), /\secho\s/.test(control)]).toEqual([true, false])
  })
})
