// getCatalog: spec.md 2, 4 and 7; pages by n and last.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { parseRepositoryPattern } from '../../../src/oci/repository-pattern.ts'
import { pushApiImage, pushBlob } from '../../support/api/api-images.ts'
import { type ApiServer, api, mounts, ownHeaders, type Reply, startApi } from '../../support/api/api-server.ts'
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

  test('answers a CatalogResponse, in byte order, and nothing else', async () => {
    const reply = await server.ask('GET', catalog)

    expect(reply.status).toBe(200)
    expect(reply.json()).toEqual({ repositories: names })
  })

  test('has exactly the content type application/json, and no Link on the only page', async () => {
    const reply = await server.ask('GET', catalog)

    expect(reply.headers.get('content-type')).toBe('application/json')
    expect(ownHeaders(reply)).toEqual(['content-length', 'content-type'])
  })

  test('is an empty array, not null, where there is nothing', async () => {
    expect((await empty.ask('GET', catalog)).text).toBe('{"repositories":[]}')
  })

  test('gives n names and a Link to the rest, in the same mount', async () => {
    const reply = await server.ask('GET', `${catalog}?n=2`)

    expect(repositories(reply)).toEqual(['app', 'app-two'])
    expect(reply.headers.get('link')).toBe(`<${catalog}?n=2&last=app-two>; rel="next"`)
  })

  test('can be walked by its Links to the end, and the last page has none', async () => {
    const pages: (readonly string[])[] = []
    let next: string | undefined = `${catalog}?n=2`
    while (next !== undefined) {
      const reply = await server.ask('GET', next)
      pages.push(repositories(reply))
      next = /^<(.+)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1]
    }

    expect(pages).toEqual([['app', 'app-two'], ['app/one', 'lib/deep/er/name'], ['zoo']])
  })

  test('has no Link when exactly n are left', async () => {
    const reply = await server.ask('GET', `${catalog}?n=5`)

    expect([repositories(reply).length, reply.headers.get('link')]).toEqual([5, null])
  })

  test('begins behind last, whether there is such a name or not', async () => {
    const [known, unknown] = [
      await server.ask('GET', `${catalog}?last=app-two`),
      await server.ask('GET', `${catalog}?last=appz`),
    ]

    expect([repositories(known)[0], repositories(unknown)[0]]).toEqual(['app/one', 'lib/deep/er/name'])
  })

  test('is empty and has no Link behind the last name', async () => {
    const reply = await server.ask('GET', `${catalog}?last=zoo&n=1`)

    expect([reply.text, reply.headers.get('link')]).toEqual(['{"repositories":[]}', null])
  })

  test('is empty and has no Link for n=0', async () => {
    const reply = await server.ask('GET', `${catalog}?n=0`)

    expect([reply.status, reply.text, reply.headers.get('link')]).toEqual([200, '{"repositories":[]}', null])
  })

  test.each(['-1', '1.5', 'ten', '', '1e2', '0x10', '%201'])('refuses n=%s with 400', async (n) => {
    const reply = await server.ask('GET', `${catalog}?n=${n}`)

    expect([reply.status, reply.json()]).toMatchObject([400, { errors: [{ code: 'UNSUPPORTED' }] }])
  })

  test('takes an n of any size', async () => {
    const reply = await server.ask('GET', `${catalog}?n=${'9'.repeat(400)}`)

    expect([reply.status, repositories(reply).length]).toEqual([200, 5])
  })

  test('ignores parameters that it does not know', async () => {
    expect((await server.ask('GET', `${catalog}?ns=docker.io`)).status).toBe(200)
  })
})

describe('the limits of a catalog page', () => {
  test('cut an n above the maximum down to it, and the Link says so', async () => {
    const own = await startApi({ BERTH_LIMITS__PAGE_MAX: '2' })
    for (const name of names) await pushApiImage(own, name, 'v1')
    const reply = await own.ask('GET', '/v2/_catalog?n=1000')
    await own.stop()

    expect(repositories(reply)).toEqual(['app', 'app-two'])
    expect(reply.headers.get('link')).toBe('</v2/_catalog?n=2&last=app-two>; rel="next"')
  })

  test('give the default length, and a Link, when n is absent', async () => {
    const own = await startApi({ BERTH_LIMITS__PAGE_DEFAULT: '3' })
    for (const name of names) await pushApiImage(own, name, 'v1')
    const reply = await own.ask('GET', '/v2/_catalog')
    await own.stop()

    expect(repositories(reply)).toEqual(['app', 'app-two', 'app/one'])
    expect(reply.headers.get('link')).toBe('</v2/_catalog?n=3&last=app%2Fone>; rel="next"')
  })
})

describe('what the catalog shows', () => {
  test('ends with the last manifest of a repository', async () => {
    const own = await startApi()
    const image = await pushApiImage(own, 'gone', 'v1')
    await own.ask('DELETE', `/v2/gone/manifests/${image.digest}`)
    const reply = await own.ask('GET', '/v2/_catalog')
    await own.stop()

    expect(repositories(reply)).toEqual([])
  })
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

  test('has a thousand names to choose from, and chooses some', () => {
    expect([inOrder.length, shown.length]).toEqual([1_000, 250 + 50 + 63])
  })

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

  test('has a Link of n and of the last name shown, not of the last name looked at', async () => {
    const reply = await own.ask('GET', '/v2/_catalog?n=63', { key })

    expect(repositories(reply)).toEqual(shown.slice(0, 63))
    expect(reply.headers.get('link')).toBe(`</v2/_catalog?n=63&last=${shown[62]}>; rel="next"`)
  })

  test('begins behind a last that the key may not see, without a word about whether it is there', async () => {
    const [there, nowhere] = [
      await own.ask('GET', '/v2/_catalog?n=3&last=lib-7/private-57', { key }),
      await own.ask('GET', '/v2/_catalog?n=3&last=lib-7/private-0', { key }),
    ]

    expect(there.text).toBe(nowhere.text)
    expect(repositories(there)).toEqual(shown.filter((name) => name > 'lib-7/private-57').slice(0, 3))
  })

  test('is complete where the pattern is a star', async () => {
    const star = await addPerson(own, { name: 'star', roles: ['reader'], limits: { repositories: within(['*']) } })
    const path = '/v2/_catalog?n=1000'

    expect((await own.ask('GET', path, { key: star })).text).toBe((await own.ask('GET', path)).text)
  })

  test('is empty where nothing matches', async () => {
    const none = await addPerson(own, { name: 'none', roles: ['reader'], limits: { repositories: within(['no/*']) } })
    const reply = await own.ask('GET', '/v2/_catalog', { key: none })

    expect([reply.text, reply.headers.get('link')]).toEqual(['{"repositories":[]}', null])
  })
})

/** As if each had been pushed to; a thousand pushes would take their time. */
function addRepositories({ dataDir }: ApiServer, names: readonly string[]): void {
  const rows = names.map((name) => `((SELECT max(id) FROM accounts), '${name}', 1, 0)`)
  damageMetadata(
    dataDir,
    `INSERT INTO repositories (account_id, name, manifest_count, created_at) VALUES ${rows.join(', ')}`,
  )
}
