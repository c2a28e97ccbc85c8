import { describe, expect, test } from 'bun:test'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { expectMisuse, failed, openWorkplace, succeeded, type Words } from './workplace.ts'

const newFolder = useTemporaryFolders('command-keys')
const wholeKey = /^berth_[A-Za-z0-9_-]{43}\n$/
const dayMs = 86_400_000

interface ShownKey {
  readonly name: string
  readonly createdAt: string
  readonly expiresAt: string | null
}

/** A data folder with the user bob, who may pull and push. */
async function openKeys(environment: Readonly<Record<string, string>> = {}) {
  const place = await openWorkplace(newFolder(), environment)
  await place.run('user add bob --account home --role writer')
  const keys = () => place.readJson<ShownKey[]>('key list bob')
  return { ...place, keys, names: async () => (await keys()).map(({ name }) => name) }
}

describe('berth key create', () => {
  test('prints the key alone to standard output, and says elsewhere that it is not shown again', async () => {
    const { run, keys } = await openKeys()
    const before = Date.now()
    const { exitCode, stdout, stderr } = await run('key create bob --name ci')
    const other = await run('key create bob --name other')

    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(wholeKey)])
    expect(other.stdout).not.toBe(stdout)
    expect(stderr).toContain('the only time')
    expect(stderr).not.toContain(stdout.trim())
    const [key] = await keys()
    const limits = { expiresAt: null, lastUsedAt: null, rights: null, repositories: null }
    expect(key).toEqual({ name: 'ci', createdAt: expect.any(String), ...limits })
    expect(Date.parse(key?.createdAt ?? '')).toBeWithin(before - 1_000, Date.now() + 1_000)
  })

  test('keeps the limits that it is given, and counts --expires from now', async () => {
    const { run, keys } = await openKeys()
    const before = Date.now()
    const limits = '--right pull --right push --right pull --repository team/* --repository a'
    await run(`key create bob --name ci --expires-at 2090-01-31T13:00:00+01:00 ${limits}`)
    await run('key create bob --name later --expires 90d')

    const [ci, later] = await keys()
    expect(ci).toMatchObject({
      expiresAt: '2090-01-31T12:00:00.000Z',
      rights: ['pull', 'push'],
      repositories: ['team/*', 'a'],
    })
    expect(Date.parse(later?.expiresAt ?? '')).toBeWithin(before + 90 * dayMs, Date.now() + 90 * dayMs + 1)
  })

  test.each([
    [{}, '127.0.0.1:5000'],
    [{ BERTH_SERVER__PUBLIC_URL: 'https://registry.example.com' }, 'registry.example.com'],
    [{ BERTH_SERVER__PUBLIC_URL: 'http://registry.example.com:8080' }, 'registry.example.com:8080'],
    [{ BERTH_SERVER__HOST: '0.0.0.0', BERTH_SERVER__PORT: '80' }, '127.0.0.1:80'],
    [{ BERTH_SERVER__HOST: '::1' }, '[::1]:5000'],
    [{ BERTH_SERVER__PORT: '0' }, '127.0.0.1:<port>'],
  ])('with the settings %j says to log in at %s', async (settings, host) => {
    const { run } = await openKeys(settings)
    expect((await run('key create bob --name ci')).stderr).toContain(`\n  docker login ${host} -u apikey\n`)
  })

  test('warns if the key has fewer rights than requested, or does not work yet', async () => {
    const { run } = await openKeys()
    const warningsOf = async (words: string) =>
      (await run(`key create bob --name ${words}`)).stderr.split('\n').filter((line) => line.includes('warning'))
    expect(await warningsOf('a --right push')).toEqual([])
    expect(await warningsOf('b --right push --right operate')).toEqual([
      'berth: warning: bob does not have operate, so the key does not either',
    ])
    await run('user disable bob')
    expect(await warningsOf('c')).toEqual([
      'berth: warning: bob is disabled: the key works only after the user is enabled',
    ])
    await run('user enable bob')
    await run('user roles bob --none')
    expect(await warningsOf('d')).toEqual(['berth: warning: bob has no rights, so the key has none'])
  })

  test('refuses a second key of the same name, and a key above the limit of the user', async () => {
    const { run, names } = await openKeys({ BERTH_LIMITS__KEYS_PER_USER: '2' })
    await run('key create bob --name a')
    expect(await run('key create bob --name a')).toEqual(failed('the user already has a key with this name: a'))
    await run('key create bob --name b')
    expect(await run('key create bob --name c')).toEqual(
      failed('the user has reached the limit of keys (limits.keys_per_user): 2'),
    )
    expect(await names()).toEqual(['a', 'b'])
  })

  test('that is not understood ends with code 2 and one line, and makes no key', async () => {
    const { run, names } = await openKeys()
    const repositories = Array.from({ length: 65 }, (_, n) => `--repository=r${n}`).join(' ')
    for (const [message, ...words] of [
      ["missing required argument 'user'", 'key create --name x'],
      ["required option '--name <key-name>' not specified", 'key create bob'],
      ['name: must be 1 to 64 letters', 'key create bob --name', 'a b'],
      ['a duration such as', 'key create bob --name x --expires soon'],
      ['a duration such as', 'key create bob --name x --expires 99999999d'],
      ['expiresAt: must be in the future', 'key create bob --name x --expires-at 2020-01-01T00:00:00Z'],
      ['expiresAt: must be in the future', 'key create bob --name x --expires 0s'],
      ['a time such as', 'key create bob --name x --expires-at 2090-01-01'],
      ['a time such as', 'key create bob --name x --expires-at 2090-01-01T00:00:00'],
      ['not both', 'key create bob --name x --expires 1d --expires-at 2090-01-01T00:00:00Z'],
      ['one of pull, push, delete, operate', 'key create bob --name x --right fly'],
      ['must be the name of a repository', 'key create bob --name x --repository UPPER'],
      ['At most 64', `key create bob --name x ${repositories}`],
    ] as const) {
      expectMisuse(await run(...(words as unknown as Words)), message)
    }
    expect(await names()).toEqual([])
  })
})

test('berth key list prints columns for people, and neither key nor hash', async () => {
  const { run } = await openKeys()
  const limits = '--expires-at 2090-01-31T12:00:00Z --right pull --repository team/* --repository a'
  await run(`key create bob --name narrow ${limits}`)
  await run('key create bob --name wide')
  const created = String.raw`\d{4}-\d\d-\d\d \d\d:\d\dZ`
  const [head, narrow, wide, ...rest] = (await run('key list bob')).stdout.split('\n')
  expect(head).toMatch(/^NAME +CREATED +EXPIRES +LAST USED +RIGHTS +REPOSITORIES$/)
  expect(narrow).toMatch(new RegExp(`^narrow +${created} +2090-01-31 12:00Z +never +pull +team/\\*, a$`))
  expect(wide).toMatch(new RegExp(`^wide +${created} +never +never +all of the user +all$`))
  expect(rest).toEqual([''])
})

test('berth key revoke revokes a key by its name, once, and no key of another user', async () => {
  const { run, names } = await openKeys()
  await run('user add eve --account home --role reader')
  for (const words of ['bob --name a', 'bob --name b', 'eve --name b']) await run(`key create ${words}`)
  expect(await run('key revoke bob a')).toEqual(succeeded('revoked a of bob\n'))
  expect(await run('key revoke bob a')).toEqual(failed('no such key: a'))
  await run('key revoke eve b')
  expect(await names()).toEqual(['b'])
})
