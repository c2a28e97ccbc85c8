// The lists of repositories and uploads, and the numbers of an account.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { pushApiImage, pushBlob } from '../../support/api/api-images.ts'
import { type ApiServer, startApi } from '../../support/api/api-server.ts'

const api = '/api/2023-12-28'
let server: ApiServer
const shared = '{"shared":"by two repositories"}'

beforeAll(async () => {
  server = await startApi()
  await pushApiImage(server, 'team/app', 'v1', { config: shared, layers: ['x'.repeat(1_000)] })
  await pushApiImage(server, 'team/app', 'v2', { config: '{"own":1}' })
  await pushApiImage(server, 'team/web', 'v1', { config: shared })
  await pushApiImage(server, 'other', 'v1', { config: '{"own":2}', layers: ['y'.repeat(5_000)] })
  await pushBlob(server, 'no/image', 'only a blob')
})
afterAll(() => server.stop())

interface Listed {
  readonly name: string
  readonly tags: number
  readonly manifests: number
  readonly bytes: number
  readonly ownedBytes: number
  readonly sharedBytes: number
  readonly pushedAt: string | null
}

const list = async (query: string) => {
  const reply = await server.ask('GET', `${api}/repositories${query}`)
  const link = /<([^>]+)>/.exec(reply.headers.get('link') ?? '')?.[1]
  const { repositories } = reply.json<{ repositories: readonly Listed[] }>()
  return { repositories, names: repositories.map(({ name }) => name), link: link?.slice(`${api}/repositories`.length) }
}

test('a repository has its numbers at once', async () => {
  const { json, status } = await server.ask('GET', `${api}/repositories/team/app`)
  const found = json<Listed>()

  expect([status, found]).toEqual([200, expect.objectContaining({ name: 'team/app', tags: 2, manifests: 2 })])
  expect(found.bytes).toBeGreaterThan(1_000 + shared.length)
  expect(found.ownedBytes + found.sharedBytes).toBe(found.bytes)
  expect(Math.abs(Date.parse(found.pushedAt ?? '') - Date.now())).toBeLessThan(60_000)
  expect((await server.ask('GET', `${api}/repositories/no/such`)).status).toBe(404)
})

test('repositories are listed in four orders, searched, and paged', async () => {
  expect((await list('')).names).toEqual(['other', 'team/app', 'team/web'])
  expect((await list('?search=eam%2Fw')).names).toEqual(['team/web'])
  expect((await list('?search=%25')).names).toEqual([])
  await server.ask('GET', '/v2/team/web/manifests/v1')

  const first = await list('?n=2&search=e')
  expect([first.names, (await list(first.link ?? '')).names]).toEqual([['other', 'team/app'], ['team/web']])
  // The orders by a number need the sums, which a job adds up.
  for (let tries = 0; (await list('?sort=size')).names.length < 3 && tries < 100; tries += 1) await Bun.sleep(100)
  expect((await list('?sort=size')).names[0]).toBe('other')
  const wanted = [...(await list('?sort=size')).names].sort()
  for (const sort of ['size', 'pushed', 'pulled']) {
    const names: string[] = []
    for (let query: string | undefined = `?sort=${sort}&n=1`; query !== undefined; ) {
      const page = await list(query)
      names.push(...page.names)
      query = page.link
    }
    expect([sort, names.sort()]).toEqual([sort, wanted])
  }
  expect((await server.ask('GET', `${api}/repositories?sort=colour`)).status).toBe(400)
})

test('shared bytes move to the repository that is left', async () => {
  const sharedOf = async (name: string) =>
    (await server.ask('GET', `${api}/repositories/${name}`)).json<Listed>().sharedBytes
  for (let tries = 0; (await sharedOf('team/web')) === 0 && tries < 100; tries += 1) await Bun.sleep(100)

  expect([await sharedOf('team/web'), await sharedOf('team/app')]).toEqual([shared.length, shared.length])
  expect(await sharedOf('other')).toBe(0)
})

test('an account has its numbers, and lists its unfinished uploads', async () => {
  const before = (await server.ask('GET', `${api}/storage`)).json<Record<string, number>>()
  const opened = await server.ask('POST', '/v2/team/app/blobs/uploads/')
  const location = opened.headers.get('location') ?? ''
  await server.ask('PATCH', location, { body: 'x'.repeat(100_000) })

  const storage = (await server.ask('GET', `${api}/storage`)).json<Record<string, unknown>>()
  const { uploads } = (await server.ask('GET', `${api}/uploads`)).json<{ uploads: readonly object[] }>()

  expect(before).toMatchObject({ images: 3, manifests: 4, tags: 4, unfinishedUploads: { count: 0, isExact: true } })
  expect((before['logicalBytes'] ?? 0) - (before['storedBytes'] ?? 0)).toBe(shared.length)
  expect(storage['unfinishedUploads']).toEqual({ count: 1, bytes: 100_000, isExact: true })
  expect(storage['waitingForCollection']).toEqual({ bytes: 'only a blob'.length, isExact: true })
  expect(uploads).toEqual([expect.objectContaining({ repository: 'team/app', subject: 'admin', sizeBytes: 100_000 })])
  await server.ask('DELETE', location)
  expect((await server.ask('GET', `${api}/uploads`)).json<object>()).toEqual({ uploads: [] })
})
