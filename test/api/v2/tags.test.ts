// getImageTagsList: spec.md 2, 4 and 7; distribution-spec end-8a, end-8b.
import { afterAll, describe, expect, test } from 'bun:test'
import { pushApiImage, pushBlob } from '../../support/api/api-images.ts'
import { mounts, ownHeaders, type Reply, startApi } from '../../support/api/api-server.ts'
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

  test('answers a TagsListResponse, in byte order, and nothing else', async () => {
    const reply = await server.ask('GET', list)

    expect([reply.status, reply.json()]).toEqual([200, { name, tags }])
  })

  test('has exactly the content type application/json, and no Link', async () => {
    const reply = await server.ask('GET', list)

    expect(reply.headers.get('content-type')).toBe('application/json')
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

  test('gives n tags and a Link to the rest, in the same mount', async () => {
    const reply = await server.ask('GET', `${list}?n=2`)

    expect(tagsOf(reply)).toEqual(['1.0', 'A'])
    expect(reply.headers.get('link')).toBe(`<${list}?n=2&last=A>; rel="next"`)
  })

  test('can be walked by its Links to the end, and the last page has none', async () => {
    const pages: (readonly string[])[] = []
    let next: string | undefined = `${list}?n=2`
    while (next !== undefined) {
      const reply = await server.ask('GET', next)
      pages.push(tagsOf(reply))
      next = /^<(.+)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1]
    }

    expect(pages).toEqual([['1.0', 'A'], ['_x', 'latest'], ['v1']])
  })

  test('begins behind last, also without n', async () => {
    expect(tagsOf(await server.ask('GET', `${list}?last=_x`))).toEqual(['latest', 'v1'])
  })

  test('begins behind a last that is no tag', async () => {
    expect(tagsOf(await server.ask('GET', `${list}?last=b`))).toEqual(['latest', 'v1'])
  })

  test('is empty and has no Link for n=0', async () => {
    const reply = await server.ask('GET', `${list}?n=0`)

    expect([reply.status, tagsOf(reply), reply.headers.get('link')]).toEqual([200, [], null])
  })

  test.each(['-1', 'x', '', '2.0'])('refuses n=%s with 400', async (n) => {
    const reply = await server.ask('GET', `${list}?n=${n}`)

    expect([reply.status, reply.json()]).toMatchObject([400, { errors: [{ code: 'UNSUPPORTED' }] }])
  })

  test('answers 500 that tells nothing but the request id, when a stored record is garbled', async () => {
    const own = await startApi({ BERTH_IDENTITY__CACHE: '0s' })
    garbleUsers(own.dataDir)
    const reply = await own.ask('GET', `${mount}/any/tags/list`, { headers: { 'x-request-id': 'id-for-the-log' } })
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
    const reply = await own.ask('GET', `${mount}/app/tags/list`)
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
    const own = await startApi({ BERTH_LIMITS__PAGE_MAX: '2', BERTH_LIMITS__PAGE_DEFAULT: '1' })
    for (const tag of tags) await pushApiImage(own, 'app', tag)
    const [all, page] = [await own.ask('GET', '/v2/app/tags/list'), await own.ask('GET', '/v2/app/tags/list?n=9')]
    await own.stop()

    expect([tagsOf(all), all.headers.get('link')]).toEqual([tags, null])
    expect(page.headers.get('link')).toBe('</v2/app/tags/list?n=2&last=A>; rel="next"')
  })
})
