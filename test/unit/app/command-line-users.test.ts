import { describe, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { runBerthHere, runBerthHereWith } from '../../support/server/berth-here.ts'
import { layEmptyData } from '../../support/stores/empty-data.ts'

const newFolder = useTemporaryFolders('command-users')

interface ShownUser {
  readonly name: string
  readonly account: string
  readonly roles: readonly string[]
  readonly disabled: boolean
  readonly hasPassword: boolean
}

/** A data folder of its own, and the commands that work on it. */
async function newWorkplace(environment: Readonly<Record<string, string>> = {}) {
  const folder = newFolder()
  await layEmptyData(join(folder, 'data'))
  const run = (...args: string[]) => runBerthHere(args, environment, folder)
  const told = (input: string, ...args: string[]) => runBerthHereWith(input, args, environment, folder)
  const users = async (...args: string[]) => {
    const { stdout, stderr, exitCode } = await run('user', 'list', '--json', ...args)
    expect([exitCode, stderr]).toEqual([0, ''])
    return JSON.parse(stdout) as ShownUser[]
  }
  return { folder, run, told, users }
}

/** A message on the error stream. */
function line(text: string): string {
  return `berth: ${text}\n`
}

test('the operator may take the right operate from the last user of an account, and is warned', async () => {
  const { run, users } = await newWorkplace()
  await run('user', 'add', 'bob', '--account', 'home', '--role', 'admin')
  await run('user', 'add', 'eve', '--account', 'home', '--role', 'reader')
  const warning = line(
    'warning: no user of the account home has the right operate now; see `berth user roles` and `berth user enable`',
  )

  expect(await run('user', 'disable', 'bob')).toEqual({ exitCode: 0, stdout: 'disabled bob\n', stderr: warning })
  await run('user', 'enable', 'bob')
  expect((await run('user', 'roles', 'bob', 'writer')).stderr).toBe(warning)
  expect((await users('--account', 'home')).map(({ name, roles, disabled }) => [name, roles, disabled])).toEqual([
    ['bob', ['writer'], false],
    ['eve', ['reader'], false],
  ])
})

describe('berth user add', () => {
  test('adds a user to the account of the first user, unless another is named', async () => {
    const { run, users } = await newWorkplace()
    await run('user', 'add', 'admin', '--account', 'home', '--role', 'admin')
    const added = await run('user', 'add', 'bob', '--role', 'writer', '--role', 'reader')
    await run('user', 'add', 'eve', '--account', 'elsewhere', '--role', 'reader')

    expect(added.exitCode).toBe(0)
    expect(added.stdout).toBe('added bob to the account home, the roles writer, reader\n')
    expect(await users()).toEqual([
      { name: 'admin', account: 'home', roles: ['admin'], disabled: false, hasPassword: false },
      { name: 'bob', account: 'home', roles: ['writer', 'reader'], disabled: false, hasPassword: false },
      { name: 'eve', account: 'elsewhere', roles: ['reader'], disabled: false, hasPassword: false },
    ])
    expect((await users('--account', 'elsewhere')).map(({ name }) => name)).toEqual(['eve'])
  })

  test('where there is no first user yet, invents no account but says what to do', async () => {
    const { run, users } = await newWorkplace()
    const { exitCode, stdout, stderr } = await run('user', 'add', 'bob')
    expect([exitCode, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^berth: the user admin, .* does not exist yet: start the server once.*--account\n$/)
    expect(await users()).toEqual([])
  })

  test('finds the first user by the name of the settings', async () => {
    const { run, users } = await newWorkplace({ BERTH_IDENTITY__ADMIN_NAME: 'root' })
    await run('user', 'add', 'root', '--account', 'home')
    await run('user', 'add', 'bob')
    expect((await users()).map(({ account }) => account)).toEqual(['home', 'home'])
  })

  test('says so when an account is new, and is silent about one that is known', async () => {
    const { run } = await newWorkplace()
    expect((await run('user', 'add', 'bob', '--account', 'new')).stderr).toContain('new is a new account')
    expect((await run('user', 'add', 'eve', '--account', 'new')).stderr).not.toContain('new account')
  })

  test('takes a password from standard input', async () => {
    const { told, users } = await newWorkplace()
    const { exitCode, stderr } = await told(
      'a word to come in\n',
      ...['user', 'add', 'bob', '--account', 'home', '--role', 'reader', '--password-stdin'],
    )
    expect(exitCode).toBe(0)
    expect(stderr).not.toContain('without a password')
    expect((await users()).map(({ hasPassword }) => hasPassword)).toEqual([true])
  })

  test('warns of roles that give nothing, and of none at all', async () => {
    const { run } = await newWorkplace({ BERTH_IDENTITY__ROLES: 'builder=push' })
    const { exitCode, stderr } = await run(
      'user',
      'add',
      'bob',
      '--account',
      'home',
      '--role',
      'builder',
      '--role',
      'x',
    )
    expect(exitCode).toBe(0)
    expect(stderr).toContain(line('warning: the role x has no rights: it is not in the setting identity.roles'))
    expect(stderr).not.toContain('role builder')
    expect((await run('user', 'add', 'eve', '--account', 'home')).stderr).toContain(
      line('warning: a user without a role has no rights'),
    )
  })

  test('refuses a name that is taken, in whatever account', async () => {
    const { run, users } = await newWorkplace()
    await run('user', 'add', 'bob', '--account', 'home', '--role', 'reader')
    const again = await run('user', 'add', 'bob', '--account', 'elsewhere', '--role', 'admin')
    expect(again).toEqual({ exitCode: 1, stdout: '', stderr: line('a user with this name already exists: bob') })
    expect((await users()).map(({ account, roles }) => [account, roles])).toEqual([['home', ['reader']]])
  })

  test.each([
    ['no name', [], "missing required argument 'name'"],
    ['two names', ['bob', 'eve'], 'too many arguments'],
    ['a name that can be none', ['bob smith', '--account', 'home'], 'name: must be 1 to 128 letters'],
    ['a role that can be none', ['bob', '--account', 'home', '--role', 'a b'], 'roles[0]: must be 1 to 64 letters'],
    ['an account without a name', ['bob', '--account', ''], 'the name of an account'],
    ['an account of two lines', ['bob', '--account', 'a\nb'], 'the name of an account'],
    ['two ways to a password', ['bob', '--password', '--password-stdin'], 'not both'],
    ['a password that is too short', ['bob', '--account', 'home', '--password-stdin'], 'password: must be 12 to 1024'],
  ])('with %s ends with code 2 and one line, and adds no user', async (_, args, words) => {
    const { told, users } = await newWorkplace()
    const { exitCode, stdout, stderr } = await told('short', 'user', 'add', ...args)
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^berth: .*\n$/)
    expect(stderr).toContain(words)
    expect(await users()).toEqual([])
  })
})

describe('berth user list', () => {
  test('prints columns for people', async () => {
    const { run } = await newWorkplace()
    await run('user', 'add', 'bob', '--account', 'home', '--role', 'reader', '--role', 'x')
    await run('user', 'add', 'christopher', '--account', 'home')
    await run('user', 'disable', 'bob')
    const { stdout } = await run('user', 'list')
    expect(stdout.split('\n')).toEqual([
      'NAME         ACCOUNT  ROLES      STATE     PASSWORD',
      'bob          home     reader, x  disabled  no',
      'christopher  home     none       enabled   no',
      '',
    ])
  })
})

describe('berth user disable, enable and roles', () => {
  test('change what is kept, say so, and can be repeated', async () => {
    const { run, users } = await newWorkplace()
    await run('user', 'add', 'bob', '--account', 'home', '--role', 'reader')
    await run('user', 'add', 'operator', '--account', 'home', '--role', 'admin')
    const state = async () => (await users()).slice(0, 1).map(({ disabled, roles }) => [disabled, roles])

    for (const _ of [1, 2]) {
      expect(await run('user', 'disable', 'bob')).toEqual({ exitCode: 0, stdout: 'disabled bob\n', stderr: '' })
      expect(await state()).toEqual([[true, ['reader']]])
    }
    for (const _ of [1, 2]) {
      expect(await run('user', 'enable', 'bob')).toEqual({ exitCode: 0, stdout: 'enabled bob\n', stderr: '' })
      expect(await state()).toEqual([[false, ['reader']]])
    }
    const replaced = await run('user', 'roles', 'bob', 'writer', 'admin', 'writer')
    expect(replaced).toEqual({ exitCode: 0, stdout: 'bob has the roles writer, admin\n', stderr: '' })
    expect(await state()).toEqual([[false, ['writer', 'admin']]])
    expect((await run('user', 'roles', 'bob', 'fly')).stderr).toContain('the role fly has no rights')
    expect((await run('user', 'roles', 'bob', '--none')).stdout).toBe('bob has no roles\n')
    expect(await state()).toEqual([[false, []]])
  })

  test.each([[['bob']], [['bob', 'reader', '--none']], [['bob', 'a b']]])(
    'roles %j end with code 2 and change nothing',
    async (args) => {
      const { run, users } = await newWorkplace()
      await run('user', 'add', 'bob', '--account', 'home', '--role', 'reader')
      const { exitCode, stdout, stderr } = await run('user', 'roles', ...args)
      expect([exitCode, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(/^berth: .*\n$/)
      expect((await users()).map(({ roles }) => roles)).toEqual([['reader']])
    },
  )
})

describe('berth user passwd', () => {
  test('sets a password from standard input', async () => {
    const { run, told, users } = await newWorkplace()
    await run('user', 'add', 'bob', '--account', 'home')
    const { exitCode, stdout, stderr } = await told('a word to come in', 'user', 'passwd', 'bob', '--password-stdin')
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toStartWith('set the password of bob')
    expect((await users()).map(({ hasPassword }) => hasPassword)).toEqual([true])
  })

  test('warns that the settings set the password of the first user back', async () => {
    const { run, told } = await newWorkplace({ BERTH_IDENTITY__ADMIN_PASSWORD: 'as the settings say' })
    await run('user', 'add', 'admin', '--account', 'home')
    const { stderr } = await told('a word to come in', 'user', 'passwd', 'admin', '--password-stdin')
    expect(stderr).toContain('identity.admin_password')
  })

  test('without a terminal and without standard input changes nothing', async () => {
    const { run, told, users } = await newWorkplace()
    await run('user', 'add', 'bob', '--account', 'home')
    const { exitCode, stderr } = await told('a word to come in', 'user', 'passwd', 'bob')
    expect(exitCode).toBe(1)
    expect(stderr).toBe(line('there is no terminal to ask for a password: use --password-stdin'))
    expect((await users()).map(({ hasPassword }) => hasPassword)).toEqual([false])
  })
})

test.each([
  [['user', 'disable', 'nobody']],
  [['user', 'enable', 'nobody']],
  [['user', 'roles', 'nobody', 'reader']],
  [['user', 'passwd', 'nobody', '--password-stdin']],
  [['key', 'create', 'nobody', '--name', 'x']],
  [['key', 'list', 'nobody']],
  [['key', 'revoke', 'nobody', 'x']],
])('%j of an unknown user ends with code 1', async (args) => {
  const run = await (await newWorkplace()).told('a word to come in', ...args)
  expect(run).toEqual({ exitCode: 1, stdout: '', stderr: line('no such user: nobody') })
})

test('where another service keeps the users, every command about them says where, and opens nothing', async () => {
  const { folder, run } = await newWorkplace({ BERTH_AUTH__URL: 'http://127.0.0.1:9/identity' })
  for (const args of [
    ['user', 'add', 'bob', '--account', 'home'],
    ['user', 'list'],
    ['user', 'disable', 'bob'],
    ['user', 'enable', 'bob'],
    ['user', 'passwd', 'bob', '--password-stdin'],
    ['user', 'roles', 'bob', 'reader'],
    ['key', 'create', 'bob', '--name', 'x'],
    ['key', 'list', 'bob'],
    ['key', 'revoke', 'bob', 'x'],
  ]) {
    const words = 'users and API keys are managed by the identity service at http://127.0.0.1:9/identity (auth.url)'
    expect([args, await run(...args)]).toEqual([args, { exitCode: 1, stdout: '', stderr: line(words) }])
  }
  // Whatever opens the stores lays out the blobs' folders.
  expect(readdirSync(join(folder, 'data'))).not.toContain('blobs')
})

test('--config names the settings of every command', async () => {
  const { folder, run } = await newWorkplace()
  const file = join(folder, 'other.yaml')
  writeFileSync(file, `data_dir: ${join(folder, 'other')}\n`)
  await run('user', 'add', 'bob', '--account', 'home', '--config', file)
  expect(JSON.parse((await run('user', 'list', '--json', '--config', file)).stdout)).toHaveLength(1)
  expect(JSON.parse((await run('user', 'list', '--json')).stdout)).toHaveLength(0)
  expect(JSON.parse((await run('account', 'list', '--json', '--config', file)).stdout)).toHaveLength(1)
  for (const args of [
    ['key', 'list', 'bob'],
    ['account', 'show', 'home'],
    ['signing-key', 'list'],
  ]) {
    expect([args, (await run(...args, '--config', file)).exitCode]).toEqual([args, 0])
    expect([args, (await run(...args, '--config', join(folder, 'absent.yaml'))).exitCode]).toEqual([args, 2])
  }
})

test.each([[['user', 'list']], [['key', 'list', 'bob']], [['account', 'list']], [['gc']]])(
  '%j in a folder without data says so, and leaves none behind',
  async (args) => {
    const folder = newFolder()

    expect(await runBerthHere(args, {}, folder)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: line('there is no data in ./data (setting data_dir)'),
    })
    expect(readdirSync(folder)).toEqual([])
  },
)
