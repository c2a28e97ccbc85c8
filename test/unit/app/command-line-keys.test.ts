import { describe, expect, test } from 'bun:test'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { runBerth } from '../../support/server/berth-command.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'

const newFolder = useTemporaryFolders('command-keys')
const wholeKey = /^berth_[A-Za-z0-9_-]{43}\n$/

interface ShownKey {
  readonly name: string
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly lastUsedAt: string | null
  readonly rights: readonly string[] | null
  readonly repositories: readonly string[] | null
}

/** A data folder with the user bob, who may pull and push. */
async function newWorkplace(environment: Readonly<Record<string, string>> = {}) {
  const folder = newFolder()
  const run = (...args: string[]) => runBerthHere(args, environment, folder)
  await run('user', 'add', 'bob', '--account', 'home', '--role', 'writer')
  const keys = async () => JSON.parse((await run('key', 'list', 'bob', '--json')).stdout) as ShownKey[]
  return { folder, run, keys }
}

describe('berth key create', () => {
  test('prints the key alone to standard output, and says elsewhere that it is not seen again', async () => {
    const { run, keys } = await newWorkplace()
    const before = Date.now()
    const { exitCode, stdout, stderr } = await run('key', 'create', 'bob', '--name', 'ci')

    expect(exitCode).toBe(0)
    expect(stdout).toMatch(wholeKey)
    expect(stderr).toContain('the only time')
    expect(stderr).toContain('\n  docker login 127.0.0.1:5000 -u apikey\n')
    expect(stderr).not.toContain(stdout.trim())
    const [key] = await keys()
    expect(key).toEqual({
      name: 'ci',
      createdAt: expect.any(String),
      expiresAt: null,
      lastUsedAt: null,
      rights: null,
      repositories: null,
    })
    expect(Date.parse(key?.createdAt ?? '')).toBeWithin(before - 1_000, Date.now() + 1_000)
  })

  test('makes another key each time', async () => {
    const { run } = await newWorkplace()
    const made = await Promise.all(['a', 'b', 'c'].map((name) => run('key', 'create', 'bob', '--name', name)))
    expect(new Set(made.map(({ stdout }) => stdout)).size).toBe(3)
  })

  test('keeps the limits that it is given', async () => {
    const { run, keys } = await newWorkplace()
    const limits = [
      '--right',
      'pull',
      '--right',
      'push',
      '--right',
      'pull',
      '--repository',
      'team/*',
      '--repository',
      'a',
    ]
    const { stdout } = await run(
      'key',
      'create',
      'bob',
      '--name',
      'ci',
      '--expires-at',
      '2090-01-31T13:00:00+01:00',
      ...limits,
    )
    expect(stdout).toMatch(wholeKey)
    expect(await keys()).toMatchObject([
      { expiresAt: '2090-01-31T12:00:00.000Z', rights: ['pull', 'push'], repositories: ['team/*', 'a'] },
    ])
  })

  test('counts --expires from now', async () => {
    const { run, keys } = await newWorkplace()
    const [before] = [Date.now(), await run('key', 'create', 'bob', '--name', 'ci', '--expires', '90d')]
    const expiresAt = Date.parse((await keys())[0]?.expiresAt ?? '')
    expect(expiresAt).toBeWithin(before + 90 * 86_400_000, Date.now() + 90 * 86_400_000 + 1)
  })

  test.each([
    [{ BERTH_SERVER__PUBLIC_URL: 'https://registry.example.com' }, 'registry.example.com'],
    [{ BERTH_SERVER__PUBLIC_URL: 'http://registry.example.com:8080' }, 'registry.example.com:8080'],
    [{ BERTH_SERVER__HOST: '0.0.0.0', BERTH_SERVER__PORT: '80' }, '127.0.0.1:80'],
    [{ BERTH_SERVER__HOST: '::1' }, '[::1]:5000'],
    [{ BERTH_SERVER__PORT: '0' }, '127.0.0.1:<port>'],
  ])('with the settings %j says to log in at %s', async (settings, host) => {
    const { run } = await newWorkplace(settings)
    const { stderr } = await run('key', 'create', 'bob', '--name', 'ci')
    expect(stderr).toContain(`\n  docker login ${host} -u apikey\n`)
  })

  test('warns when the key can do less than it looks', async () => {
    const { run } = await newWorkplace()
    const create = async (name: string, ...args: string[]) =>
      (await run('key', 'create', 'bob', '--name', name, ...args)).stderr
        .split('\n')
        .filter((text) => text.includes('warning'))
    expect(await create('a', '--right', 'push')).toEqual([])
    expect(await create('b', '--right', 'push', '--right', 'operate')).toEqual([
      'berth: warning: bob does not have operate, so the key does not either',
    ])
    await run('user', 'disable', 'bob')
    expect(await create('c')).toEqual(['berth: warning: bob is disabled: the key works only after the user is enabled'])
    await run('user', 'enable', 'bob')
    await run('user', 'roles', 'bob', '--none')
    expect(await create('d')).toEqual(['berth: warning: bob has no rights, so the key has none'])
  })

  test('refuses a second key of the same name, and a key above the limit of the user', async () => {
    const { run, keys } = await newWorkplace({ BERTH_LIMITS__KEYS_PER_USER: '2' })
    await run('key', 'create', 'bob', '--name', 'a')
    expect(await run('key', 'create', 'bob', '--name', 'a')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'berth: the user already has a key with this name: a\n',
    })
    await run('key', 'create', 'bob', '--name', 'b')
    expect(await run('key', 'create', 'bob', '--name', 'c')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'berth: the user has reached the limit of keys (limits.keys_per_user): 2\n',
    })
    expect((await keys()).map(({ name }) => name)).toEqual(['a', 'b'])
  })

  test('of several at once by the same name, one makes a key', async () => {
    const { folder, keys } = await newWorkplace()
    const made = await Promise.all(
      [1, 2, 3, 4].map(() => runBerth(['key', 'create', 'bob', '--name', 'same'], {}, folder)),
    )
    expect(made.map(({ exitCode }) => exitCode).sort()).toEqual([0, 1, 1, 1])
    expect(made.filter(({ stdout }) => wholeKey.test(stdout))).toHaveLength(1)
    expect(await keys()).toHaveLength(1)
  })

  test.each([
    ['no user', ['--name', 'x'], "missing required argument 'user'"],
    ['no name', ['bob'], "required option '--name <key-name>' not specified"],
    ['a name that can be none', ['bob', '--name', 'a b'], 'name: must be 1 to 64 letters'],
    ['a length of time that is none', ['bob', '--name', 'x', '--expires', 'soon'], 'a duration such as'],
    ['a length of time beyond all calendars', ['bob', '--name', 'x', '--expires', '99999999d'], 'a duration such as'],
    [
      'an end that is past',
      ['bob', '--name', 'x', '--expires-at', '2020-01-01T00:00:00Z'],
      'expiresAt: must be in the future',
    ],
    ['an end at once', ['bob', '--name', 'x', '--expires', '0s'], 'expiresAt: must be in the future'],
    ['a day and no time', ['bob', '--name', 'x', '--expires-at', '2090-01-01'], 'a time such as'],
    ['a time without a zone', ['bob', '--name', 'x', '--expires-at', '2090-01-01T00:00:00'], 'a time such as'],
    ['two ends', ['bob', '--name', 'x', '--expires', '1d', '--expires-at', '2090-01-01T00:00:00Z'], 'not both'],
    ['a right that is none', ['bob', '--name', 'x', '--right', 'fly'], 'one of pull, push, delete, operate'],
    [
      'a repository that can be none',
      ['bob', '--name', 'x', '--repository', 'UPPER'],
      'must be the name of a repository',
    ],
    [
      '65 repositories',
      ['bob', '--name', 'x', ...Array.from({ length: 65 }, (_, n) => `--repository=r${n}`)],
      'At most 64',
    ],
  ])('with %s ends with code 2 and one line, and makes no key', async (_, args, words) => {
    const { run, keys } = await newWorkplace()
    const { exitCode, stdout, stderr } = await run('key', 'create', ...args)
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^berth: .*\n$/)
    expect(stderr).toContain(words)
    expect(await keys()).toEqual([])
  })
})

describe('berth key list', () => {
  test('prints columns for people, and neither key nor hash', async () => {
    const { run } = await newWorkplace()
    const limits = [
      '--expires-at',
      '2090-01-31T12:00:00Z',
      '--right',
      'pull',
      '--repository',
      'team/*',
      '--repository',
      'a',
    ]
    await run('key', 'create', 'bob', '--name', 'narrow', ...limits)
    await run('key', 'create', 'bob', '--name', 'wide')
    const { stdout } = await run('key', 'list', 'bob')
    const created = String.raw`\d{4}-\d\d-\d\d \d\d:\d\dZ`
    const [head, narrow, wide, ...rest] = stdout.split('\n')
    expect(head).toMatch(/^NAME +CREATED +EXPIRES +LAST USED +RIGHTS +REPOSITORIES$/)
    expect(narrow).toMatch(new RegExp(`^narrow +${created} +2090-01-31 12:00Z +never +pull +team/\\*, a$`))
    expect(wide).toMatch(new RegExp(`^wide +${created} +never +never +all of the user +all$`))
    expect(rest).toEqual([''])
  })
})

describe('berth key revoke', () => {
  test('ends a key by its name, once', async () => {
    const { run, keys } = await newWorkplace()
    for (const name of ['a', 'b']) await run('key', 'create', 'bob', '--name', name)
    expect(await run('key', 'revoke', 'bob', 'a')).toEqual({ exitCode: 0, stdout: 'revoked a of bob\n', stderr: '' })
    expect((await keys()).map(({ name }) => name)).toEqual(['b'])
    expect(await run('key', 'revoke', 'bob', 'a')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'berth: no such key: a\n',
    })
  })

  test("leaves another user's key of the same name alone", async () => {
    const { run, keys } = await newWorkplace()
    await run('user', 'add', 'eve', '--account', 'home', '--role', 'reader')
    for (const user of ['bob', 'eve']) await run('key', 'create', user, '--name', 'ci')
    await run('key', 'revoke', 'eve', 'ci')
    expect((await keys()).map(({ name }) => name)).toEqual(['ci'])
  })
})
