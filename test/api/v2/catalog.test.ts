// getCatalog: spec.md 2, 4 and 7; pages by n and last.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { parseRepositoryPattern } from '../../../src/oci/repository-pattern.ts'
import { pushApiImage, pushBlob } from '../../support/api/api-images.ts'
import {
  type ApiServer,
  api,
  mounts,
  ownHeaders,
  type Reply,
  startApi,
  verdictOf,
} from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { damageMetadata } from '../../support/stores/store-damage.ts'

const server = await startApi()
const empty = await startApi()
afterAll(() => Promise.all([server.stop(), empty.stop()]))

// Byte order is not the order of letters: `-` and `.` come before `/`, digits before letters.
const names = ['app', 'app-two', 'app/one', 'lib/deep/er/name', 'zoo']
for (const name of names.toReversed()) await pushApiImage(server, name, 'v1')
await pushBlob(server, 'blob-only', 'no manifest yet')

const repositories = (reply: Reply): readonly string[] => reply.json<{ repositories: string[] }>().repositories

describe.each(mounts)('getCatalog at %s/_catalog', (mount) => {
  const catalog = `${mount}/_catalog`

  test('answers a CatalogResponse with exactly the content type application/json, and no Link', async () => {
    const reply = await server.ask('GET', catalog)

    expect([reply.json(), reply.headers.get('content-type')]).toEqual([{ repositories: names }, 'application/json'])
    expect(ownHeaders(reply)).toEqual(['content-length', 'content-type'])
  })

  test('is an empty array, not null, where there is nothing', async () => {
    expect((await empty.ask('GET', catalog)).text).toBe('{"repositories":[]}')
  })

  test.each([
    ['n=2', names.slice(0, 2), '?n=2&last=app-two'],
    ['n=2&last=app-two', names.slice(2, 4), '?n=2&last=lib%2Fdeep%2Fer%2Fname'],
    ['n=2&last=lib/deep/er/name', names.slice(4), null],
    ['n=5', names, null],
    [`n=${'9'.repeat(400)}`, names, null],
    ['n=0', [], null],
    ['last=app-two', names.slice(2), null],
    ['last=appz', names.slice(3), null],
    ['last=zoo&n=1', [], null],
    ['ns=docker.io', names, null],
  ])('for ?%s is %j, and the rest is at %p', async (query, expected, rest) => {
    const reply = await server.ask('GET', `${catalog}?${query}`)
    const link = rest === null ? null : `<${catalog}${rest}>; rel="next"`

    expect([reply.status, repositories(reply), reply.headers.get('link')]).toEqual([200, expected, link])
  })

  test.each(['-1', '1.5', 'ten', '', '1e2', '0x10', '%201'])('refuses n=%s with 400', async (n) => {
    expect(verdictOf(await server.ask('GET', `${catalog}?n=${n}`))).toBe('400 UNSUPPORTED')
  })
})

test.each([
  ['an n above the maximum is cut down to it', { BERTH_LIMITS__PAGE_MAX: '2' }, '?n=1000', 2, 'n=2&last=app-two'],
  ['there is a default without an n', { BERTH_LIMITS__PAGE_DEFAULT: '3' }, '', 3, 'n=3&last=app%2Fone'],
])('the length of a page: %s, and the Link says so', async (_, settings, query, length, rest) => {
  const own = await startApi(settings)
  for (const name of names) await pushApiImage(own, name, 'v1')
  const reply = await own.ask('GET', `/v2/_catalog${query}`)
  await own.stop()

  expect(repositories(reply)).toEqual(names.slice(0, length))
  expect(reply.headers.get('link')).toBe(`</v2/_catalog?${rest}>; rel="next"`)
})

test('a repository leaves the catalog with its last manifest', async () => {
  const image = await pushApiImage(server, 'zzz', 'v1')
  const before = await server.ask('GET', '/v2/_catalog?last=zoo')
  await server.ask('DELETE', `/v2/zzz/manifests/${image.digest}`)

  expect([repositories(before), repositories(await server.ask('GET', '/v2/_catalog?last=zoo'))]).toEqual([['zzz'], []])
})

describe('what the catalog shows to a limited key', () => {
  const within = (limits: readonly string[]) =>
    limits.map((text) => parseRepositoryPattern(text) ?? expect.unreachable())
  const some = ['team/*', '*/public', 'a_b*', 'exact']
  const inOrder = Array.from({ length: 250 }, (_, at) => [
    `team/app-${at}`,
    `teams/app-${at}`,
    `lib-${at % 50}/${at < 50 ? 'public' : `private-${at}`}`,
    `${['a_b', 'axb', 'a-b', 'a__b'][at % 4]}${at}`,
  ])
    .flat()
    .toSorted()
  const shown = inOrder.filter((name) => /^team\/|\/public$|^a_b/.test(name))
  let own: ApiServer
  let key = ''

  beforeAll(async () => {
    own = await startApi()
    key = await addPerson(own, { name: 'limited', roles: ['admin'], limits: { repositories: within(some) } })
    await own.ask('POST', `${api}/enable`)
    addRepositories(own, inOrder)
    expect([inOrder.length, shown.length]).toEqual([1_000, 250 + 50 + 63])
  })
  afterAll(() => own.stop())

  /** Every page from this address on, by its Links. */
  async function walk(path: string): Promise<readonly (readonly string[])[]> {
    const pages: (readonly string[])[] = []
    for (let next: string | undefined = path; next !== undefined; ) {
      const reply = await own.ask('GET', next, { key })
      pages.push(repositories(reply))
      next = /^<(.+)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1]
    }
    return pages
  }

  test.each(mounts.flatMap((mount) => [1, 2, 37, 100, 121, 363, 1_000].map((n) => [mount, n] as const)))(
    'at %s in pages of %p: all full but the last, no Link to an empty one, nothing left out',
    async (mount, n) => {
      // One by one, only the beginning.
      const last = n > 2 ? '' : `&last=${shown.at(-9)}`
      const pages = await walk(`${mount}/_catalog?n=${n}${last}`)

      expect(pages.flat()).toEqual(n > 2 ? shown : shown.slice(-8))
      expect(pages.slice(0, -1).every((page) => page.length === n)).toBe(true)
      expect(pages.at(-1)?.length).toBeGreaterThan(0)
    },
  )

  test('begins behind a last that the key may not see, without a word about whether it is there', async () => {
    const [there, nowhere] = [
      await own.ask('GET', '/v2/_catalog?n=3&last=lib-7/private-57', { key }),
      await own.ask('GET', '/v2/_catalog?n=3&last=lib-7/private-0', { key }),
    ]

    expect(there.text).toBe(nowhere.text)
    expect(repositories(there)).toEqual(shown.filter((name) => name > 'lib-7/private-57').slice(0, 3))
  })

  test.each([
    ['is complete where the pattern is a star', ['*'], inOrder],
    ['is empty where nothing matches', ['no/*'], []],
  ])('%s', async (_, limits, expected) => {
    const repositoryLimits = { repositories: within(limits) }
    const key = await addPerson(own, { name: `reads-${expected.length}`, roles: ['reader'], limits: repositoryLimits })
    const reply = await own.ask('GET', '/v2/_catalog?n=1000', { key })

    expect([repositories(reply), reply.headers.get('link')]).toEqual([expected, null])
  })
})

/** As if each had been pushed to; a thousand pushes would take their time. */
function addRepositories({ dataDir }: ApiServer, names: readonly string[]): void {
  const rows = names.map((name) => `((SELECT max(id) FROM accounts), '${name}', 1, 0)`)
  damageMetadata(dataDir, `INSERT INTO repositories (account_id, name, is_image, created_at) VALUES ${rows.join(', ')}`)
}
