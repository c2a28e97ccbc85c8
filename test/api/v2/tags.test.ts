// getImageTagsList: spec.md 2, 4 and 7; distribution-spec end-8a, end-8b.
import { afterAll, describe, expect, test } from 'bun:test'
import { pushApiImage, pushBlob } from '../../support/api/api-images.ts'
import { mounts, ownHeaders, type Reply, startApi, verdictOf } from '../../support/api/api-server.ts'
import { garbleUsers, loseMetadata } from '../../support/stores/store-damage.ts'

const server = await startApi()
afterAll(() => server.stop())

const name = 'tags/deep/app'
const tags = ['1.0', 'A', '_x', 'latest', 'v1']
for (const tag of tags.toReversed()) await pushApiImage(server, name, tag)
await pushBlob(server, 'tags/none', 'a repository without a manifest')

const tagsOf = (reply: Reply): readonly string[] => reply.json<{ tags: string[] }>().tags

describe.each(mounts)('getImageTagsList at %s', (mount) => {
  const list = `${mount}/${name}/tags/list`

  test('answers a TagsListResponse with exactly the content type application/json, and no Link', async () => {
    const reply = await server.ask('GET', list)

    expect([reply.json(), reply.headers.get('content-type')]).toEqual([{ name, tags }, 'application/json'])
    expect(ownHeaders(reply)).toEqual(['content-length', 'content-type'])
  })

  test('answers 404 NAME_UNKNOWN for an image that does not exist', async () => {
    const reply = await server.ask('GET', `${mount}/no/such/tags/list`)

    expect(reply.status).toBe(404)
    expect(reply.json()).toEqual({
      errors: [{ code: 'NAME_UNKNOWN', message: 'repository name not known to registry', detail: { name: 'no/such' } }],
      msg: 'repository name not known to registry',
    })
  })

  test('is an empty array, not null, where there are no tags', async () => {
    expect((await server.ask('GET', `${mount}/tags/none/tags/list`)).json()).toEqual({ name: 'tags/none', tags: [] })
  })

  test('comes in pages of n tags that Links of the same mount join, and the last page has none', async () => {
    const first = await server.ask('GET', `${list}?n=2`)
    const second = await server.ask('GET', `${list}?n=2&last=A`)
    const third = await server.ask('GET', `${list}?n=2&last=latest`)

    expect([tagsOf(first), first.headers.get('link')]).toEqual([tags.slice(0, 2), `<${list}?n=2&last=A>; rel="next"`])
    expect([tagsOf(second), second.headers.get('link')]).toEqual([
      tags.slice(2, 4),
      `<${list}?n=2&last=latest>; rel="next"`,
    ])
    expect([tagsOf(third), third.headers.get('link')]).toEqual([tags.slice(4), null])
  })

  test.each([
    ['last=_x', ['latest', 'v1']],
    ['last=b', ['latest', 'v1']],
    ['n=0', []],
  ])('for ?%s is %j, without a Link', async (query, expected) => {
    const reply = await server.ask('GET', `${list}?${query}`)

    expect([reply.status, tagsOf(reply), reply.headers.get('link')]).toEqual([200, expected, null])
  })

  test.each(['-1', 'x', '', '2.0'])('refuses n=%s with 400', async (n) => {
    expect(verdictOf(await server.ask('GET', `${list}?n=${n}`))).toBe('400 UNSUPPORTED')
  })
})

describe('getImageTagsList while a store fails', () => {
  test('answers 500 that tells nothing but the request id, when a stored record is garbled', async () => {
    const own = await startApi({ BERTH_IDENTITY__CACHE: '0s' })
    garbleUsers(own.dataDir)
    const reply = await own.ask('GET', '/v2/any/tags/list', { headers: { 'x-request-id': 'id-for-the-log' } })
    await own.stop()

    expect(reply.status).toBe(500)
    expect(reply.headers.get('x-request-id')).toBe('id-for-the-log')
    expect(reply.json()).toEqual({
      errors: [{ code: 'UNKNOWN', message: 'internal error', detail: { requestId: 'id-for-the-log' } }],
      msg: 'internal error',
    })
  })

  test('answers 503 with Retry-After while the metadata store cannot be asked', async () => {
    const own = await startApi()
    await pushApiImage(own, 'app', 'v1')
    loseMetadata(own.dataDir)
    const reply = await own.ask('GET', '/v2/app/tags/list')
    await own.stop()

    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '5'])
    expect(reply.json()).toMatchObject({ errors: [{ code: 'UNAVAILABLE' }], msg: 'the metadata store is unavailable' })
  })
})

describe('what the list of tags shows', () => {
  test('is never a digest', async () => {
    const image = await pushApiImage(server, 'tags/by-digest', 'v1', { layers: ['x'] })
    await server.ask('DELETE', '/v2/tags/by-digest/manifests/v1')

    const reply = await server.ask('GET', '/v2/tags/by-digest/tags/list')
    expect([tagsOf(reply), (await server.ask('GET', `/v2/tags/by-digest/manifests/${image.digest}`)).status]).toEqual([
      [],
      200,
    ])
  })

  test('is all of it when n is absent, however long', async () => {
    const limits = { BERTH_LIMITS__PAGE_MAX: '2', BERTH_LIMITS__PAGE_DEFAULT: '1', BERTH_LIMITS__TAGS_PER_PUSH: '64' }
    const own = await startApi(limits)
    const { bytes, digest, mediaType } = await pushApiImage(own, 'app', 't1000')
    // More than two of the pages of 500 tags that the server reads and sends one after the other.
    const many = Array.from({ length: 1_010 }, (_, number) => `t${1_000 + number}`)
    for (let at = 0; at < many.length; at += 64) {
      const query = many.slice(at, at + 64).map((tag) => `tag=${tag}`)
      const path = `/v2/app/manifests/${digest}?${query.join('&')}`
      await own.ask('PUT', path, { body: bytes, headers: { 'content-type': mediaType } })
    }
    const lists = ['', '?last=t1499', '?last=t1508'].map((query) => own.ask('GET', `/v2/app/tags/list${query}`))
    const [all, second, third] = await Promise.all(lists)
    const page = await own.ask('GET', '/v2/app/tags/list?n=9')
    await own.stop()

    expect([all && tagsOf(all), all?.headers.get('link')]).toEqual([many, null])
    expect([second && tagsOf(second), third && tagsOf(third)]).toEqual([many.slice(500), many.slice(509)])
    expect(page.headers.get('link')).toBe('</v2/app/tags/list?n=2&last=t1001>; rel="next"')
  })
})
