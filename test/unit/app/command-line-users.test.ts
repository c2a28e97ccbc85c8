import { describe, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import type { CommandRun } from '../../support/server/berth-command.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'
import { expectMisuse, failed, openWorkplace, succeeded, toArguments, type Words } from './workplace.ts'

const newFolder = useTemporaryFolders('command-users')

interface ShownUser {
  readonly name: string
  readonly account: string
  readonly roles: readonly string[]
  readonly disabled: boolean
  readonly hasPassword: boolean
}

async function openUsers(environment: Readonly<Record<string, string>> = {}) {
  const place = await openWorkplace(newFolder(), environment)
  const users = (more = '') => place.readJson<ShownUser[]>(`user list${more}`)
  const addBob = () => place.run('user add bob --account home --role reader')
  return { ...place, users, addBob }
}

const password = 'a word to come in'
const warning = (text: string) => `berth: warning: ${text}\n`

describe('berth user add', () => {
  test('adds a user to the account of the first user, unless another is named', async () => {
    const { run, users } = await openUsers()
    await run('user add admin --account home --role admin')
    expect(await run('user add bob --role writer --role reader')).toMatchObject({
      exitCode: 0,
      stdout: 'added bob to the account home, the roles writer, reader\n',
      stderr: expect.not.stringContaining('new account'),
    })
    const added = await run('user add eve --account elsewhere --role reader')
    expect(added.stderr).toContain('elsewhere is a new account')

    const eve = { name: 'eve', account: 'elsewhere', roles: ['reader'], disabled: false, hasPassword: false }
    expect(await users()).toEqual([
      { name: 'admin', account: 'home', roles: ['admin'], disabled: false, hasPassword: false },
      { name: 'bob', account: 'home', roles: ['writer', 'reader'], disabled: false, hasPassword: false },
      eve,
    ])
    expect(await users(' --account elsewhere')).toEqual([eve])
  })

  test('finds the first user by the setting; if there is none, invents no account and says what to do', async () => {
    const { run, users } = await openUsers({ BERTH_IDENTITY__ADMIN_NAME: 'root' })
    const { exitCode, stdout, stderr } = await run('user add bob')
    expect([exitCode, stdout, await users()]).toEqual([1, '', []])
    expect(stderr).toMatch(/^berth: the user root, .* does not exist yet: start the server once.*--account\n$/)

    await run('user add root --account home')
    await run('user add bob')
    expect((await users()).map(({ account }) => account)).toEqual(['home', 'home'])
  })

  test('warns of roles that have no rights, and of no roles at all', async () => {
    const { run } = await openUsers({ BERTH_IDENTITY__ROLES: 'builder=push' })
    const { exitCode, stderr } = await run('user add bob --account home --role builder --role x')
    expect([exitCode, stderr.includes('role builder')]).toEqual([0, false])
    expect(stderr).toContain(warning('the role x has no rights: it is not in the setting identity.roles'))
    expect((await run('user add eve --account home')).stderr).toContain(warning('a user without a role has no rights'))
  })

  test('refuses a name that is taken, in any account', async () => {
    const { run, users, addBob } = await openUsers()
    await addBob()
    const again = await run('user add bob --account elsewhere --role admin')
    expect(again).toEqual(failed('a user with this name already exists: bob'))
    expect((await users()).map(({ account, roles }) => [account, roles])).toEqual([['home', ['reader']]])
  })
})

test('berth user list prints columns for people', async () => {
  const { run } = await openUsers()
  await run('user add bob --account home --role reader --role x')
  await run('user add christopher --account home')
  await run('user disable bob')
  expect((await run('user list')).stdout.split('\n')).toEqual([
    'NAME         ACCOUNT  ROLES      STATE     PASSWORD',
    'bob          home     reader, x  disabled  no',
    'christopher  home     none       enabled   no',
    '',
  ])
})

describe('berth user disable, enable and roles', () => {
  test('say what they do, and can be repeated', async () => {
    const { run, users, addBob } = await openUsers()
    await addBob()
    await run('user add operator --account home --role admin')
    const noRight = 'the role fly has no rights: it is not in the setting identity.roles'
    const rows: readonly (readonly [string, CommandRun, string])[] = [
      ['disable bob', succeeded('disabled bob\n'), 'disabled: reader'],
      ['disable bob', succeeded('disabled bob\n'), 'disabled: reader'],
      ['enable bob', succeeded('enabled bob\n'), 'enabled: reader'],
      ['enable bob', succeeded('enabled bob\n'), 'enabled: reader'],
      ['roles bob writer admin writer', succeeded('bob has the roles writer, admin\n'), 'enabled: writer,admin'],
      ['roles bob fly', succeeded('bob has the role fly\n', warning(noRight)), 'enabled: fly'],
      [
        'roles bob --none',
        succeeded('bob has no roles\n', warning('a user without a role has no rights')),
        'enabled: ',
      ],
    ]
    for (const [words, outcome, state] of rows) {
      const done = await run(`user ${words}`)
      const [bob] = await users()
      expect([words, done]).toEqual([words, outcome])
      expect(`${bob?.disabled ? 'disabled' : 'enabled'}: ${bob?.roles.join()}`).toBe(state)
    }
  })

  test('may remove the right operate from the last user of an account, with a warning', async () => {
    const { run, users, addBob } = await openUsers()
    await addBob()
    await run('user add ann --account home --role admin')
    const text = 'no user of the account home has the right operate now; see `berth user roles` and `berth user enable`'

    expect(await run('user disable ann')).toEqual(succeeded('disabled ann\n', warning(text)))
    await run('user enable ann')
    expect((await run('user roles ann writer')).stderr).toBe(warning(text))
    expect((await users()).map(({ name, roles, disabled }) => [name, roles, disabled])).toEqual([
      ['ann', ['writer'], false],
      ['bob', ['reader'], false],
    ])
  })
})

describe('berth user passwd', () => {
  test('sets a password from standard input, and warns if the settings set it back', async () => {
    const { runWith, users, addBob } = await openUsers({
      BERTH_IDENTITY__ADMIN_NAME: 'bob',
      BERTH_IDENTITY__ADMIN_PASSWORD: 'as the settings say',
    })
    await addBob()
    const { exitCode, stdout, stderr } = await runWith(password, 'user passwd bob --password-stdin')
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^set the password of bob/)])
    expect(stderr).toContain('identity.admin_password')
    expect((await users()).map(({ hasPassword }) => hasPassword)).toEqual([true])
  })

  test('without a terminal and without standard input changes nothing', async () => {
    const { runWith, users, addBob } = await openUsers()
    await addBob()
    expect(await runWith(password, 'user passwd bob')).toEqual(
      failed('there is no terminal to ask for a password: use --password-stdin'),
    )
    expect((await users()).map(({ hasPassword }) => hasPassword)).toEqual([false])
  })
})

test('commands that are not understood end with code 2 and one line, and change nothing', async () => {
  const { runWith, users, addBob } = await openUsers()
  await addBob()
  const before = await users()
  for (const [message, ...words] of [
    ["missing required argument 'name'", 'user add'],
    ['too many arguments', 'user add bob eve'],
    ['name: must be 1 to 128 letters', 'user add --account home', 'eve smith'],
    ['roles[0]: must be 1 to 64 letters', 'user add eve --account home --role', 'a b'],
    ['the name of an account', 'user add eve --account', ''],
    ['the name of an account', 'user add eve --account', 'a\nb'],
    ['not both', 'user add eve --password --password-stdin'],
    ['password: must be 12 to 1024', 'user add eve --account home --password-stdin'],
    ['name one or more roles, or use --none', 'user roles bob'],
    ['name one or more roles, or use --none', 'user roles bob writer --none'],
    ['roles[0]: must be 1 to 64 letters', 'user roles bob', 'a b'],
  ] as const satisfies readonly (readonly [string, ...Words])[]) {
    expectMisuse(await runWith('short', ...(words as unknown as Words)), message)
  }
  expect(await users()).toEqual(before)
})

const aboutUsers = ['disable bob', 'enable bob', 'roles bob reader', 'passwd bob --password-stdin'].map(
  (words) => `user ${words}`,
)
const aboutKeys = ['create bob --name x', 'list bob', 'revoke bob x'].map((words) => `key ${words}`)

test('every command about an unknown user says so', async () => {
  const { runWith } = await openUsers()
  for (const words of [...aboutUsers, ...aboutKeys]) {
    expect([words, await runWith(password, words)]).toEqual([words, failed('no such user: bob')])
  }
})

test('where another service manages the users, every command about them says where, and opens nothing', async () => {
  const { folder, run } = await openUsers({ BERTH_AUTH__URL: 'http://127.0.0.1:9/identity' })
  const text = 'users and API keys are managed by the identity service at http://127.0.0.1:9/identity (auth.url)'
  for (const words of [...aboutUsers, ...aboutKeys, 'user add bob --account home', 'user list']) {
    expect([words, await run(words)]).toEqual([words, failed(text)])
  }
  // A command that opens the stores creates the folders of the blobs.
  expect(readdirSync(join(folder, 'data'))).not.toContain('blobs')
})

test('--config names the settings of every command', async () => {
  const { folder, run, readJson } = await openUsers()
  const file = join(folder, 'other.yaml')
  writeFileSync(file, `data_dir: ${join(folder, 'other')}\n`)
  await run(`user add bob --account home --config ${file}`)
  expect(await readJson<object[]>(`user list --config ${file}`)).toHaveLength(1)
  expect(await readJson<object[]>('user list')).toHaveLength(0)
  for (const words of ['account list', 'key list bob', 'account show home', 'signing-key list']) {
    expect([words, (await run(`${words} --config ${file}`)).exitCode]).toEqual([words, 0])
    expect([words, (await run(`${words} --config ${join(folder, 'absent.yaml')}`)).exitCode]).toEqual([words, 2])
  }
})

test('a command in a folder without data says so, and creates none', async () => {
  const folder = newFolder()
  for (const words of ['user list', 'key list bob', 'account list', 'gc']) {
    const done = await runBerthHere(toArguments([words]), {}, folder)
    expect([words, done]).toEqual([words, failed('there is no data in ./data (setting data_dir)')])
  }
  expect(readdirSync(folder)).toEqual([])
})
