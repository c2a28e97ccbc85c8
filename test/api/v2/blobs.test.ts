// getBlob and deleteBlob: distribution-spec end-2, end-10; RFC 9110, 13 and 14. The plain cases are in ../../conformance.
import { afterAll, describe, expect, test } from 'bun:test'
import { digestOf, pushApiImage, pushBlob } from '../../support/api/api-images.ts'
import { mounts, ownHeaders, startApi, verdictOf } from '../../support/api/api-server.ts'

const server = await startApi()
afterAll(() => server.stop())

const name = 'blobs/deep/app'
const content = '0123456789'
const digest = await pushBlob(server, name, content)
/** The first is stored inline. The other is a file, to which Bun applies a `Range` by itself if this server does not. */
const contents = [content, content.repeat(2_000)]
const absent = `sha256:${'0'.repeat(64)}`

describe.each(mounts)('getBlob at %s', (mount) => {
  const blob = `${mount}/${name}/blobs/${digest}`
  const get = (headers: Readonly<Record<string, string>>) => server.ask('GET', blob, { headers })
  const getEach = async (headersOf: (digest: string) => Readonly<Record<string, string>>) => {
    const digests = await Promise.all(contents.map((each) => pushBlob(server, name, each)))
    return Promise.all(
      digests.map(async (each) => {
        const reply = await server.ask('GET', `${mount}/${name}/blobs/${each}`, { headers: headersOf(each) })
        return [reply.status, reply.text, reply.headers.get('content-range')]
      }),
    )
  }

  test('names type, length, digest, entity tag and ranges, and keeps browsers from showing it', async () => {
    const reply = await server.ask('GET', blob)

    expect(Object.fromEntries(ownHeaders(reply).map((header) => [header, reply.headers.get(header)]))).toEqual({
      'accept-ranges': 'bytes',
      'content-disposition': 'attachment',
      'content-length': '10',
      'content-security-policy': "default-src 'none'; sandbox",
      'content-type': 'application/octet-stream',
      'docker-content-digest': digest,
      etag: `"${digest}"`,
    })
  })

  test.each(['bytes=3-3', 'Bytes = 3 - 3'])('gives 206 and the part for Range: %s', async (range) => {
    expect(await getEach(() => ({ range }))).toEqual(contents.map((each) => [206, '3', `bytes 3-3/${each.length}`]))
  })

  test('gives 206 and all of a blob that has no more than the last bytes of a Range', async () => {
    const whole = contents.map((each) => [206, each, `bytes 0-${each.length - 1}/${each.length}`])

    expect(await getEach(() => ({ range: 'bytes=-20000' }))).toEqual(whole)
  })

  test.each(['bytes=0-1,4-5', 'lines=1-2', 'bytes=', 'bytes=-', 'nonsense'])(
    'gives all for Range: %s',
    async (range) => {
      expect(await getEach(() => ({ range }))).toEqual(contents.map((each) => [200, each, null]))
    },
  )

  test.each(['bytes=10-', 'bytes=-0'])('answers 416 with the size for Range: %s', async (range) => {
    const reply = await get({ range })

    expect([verdictOf(reply), reply.headers.get('content-range')]).toEqual(['416 SIZE_INVALID', 'bytes */10'])
  })

  test.each([
    ['"<digest>"', 206],
    [`"${absent}"`, 200],
    ['W/"<digest>"', 200],
    ['Sat, 21 Nov 2026 04:51:15 GMT', 200],
  ])('gives the part only if If-Range names this content: %s is %d', async (condition, status) => {
    const replies = await getEach((each) => ({ range: 'bytes=0-3', 'if-range': condition.replace('<digest>', each) }))

    expect(replies.map(([each, text]) => [each, text])).toEqual(
      contents.map((each) => [status, status === 206 ? '0123' : each]),
    )
  })

  test.each(['GET', 'HEAD'])('%s answers 304 without a body when the client has it already', async (method) => {
    const headers = { 'if-none-match': `"${digest}"`, range: 'bytes=99-' }
    const reply = await server.ask(method, blob, { headers })

    expect([reply.status, reply.text, reply.headers.get('etag')]).toEqual([304, '', `"${digest}"`])
    expect([reply.headers.get('content-type'), reply.headers.get('content-disposition')]).toEqual([null, null])
  })

  test('is never encoded, whatever the client would take', async () => {
    const reply = await get({ 'accept-encoding': 'zstd, gzip, deflate' })

    expect([reply.headers.get('content-encoding'), reply.headers.get('content-length')]).toEqual([null, '10'])
  })

  test('names the digest that is not here', async () => {
    const reply = await server.ask('GET', `${mount}/${name}/blobs/${absent}`)

    expect([reply.status, reply.json()]).toMatchObject([
      404,
      { errors: [{ code: 'BLOB_UNKNOWN', detail: { digest: absent } }] },
    ])
  })

  test.each([
    ['GET', 'no/such', digest, '404 NAME_UNKNOWN'],
    ['DELETE', 'no/such', absent, '404 NAME_UNKNOWN'],
    ['DELETE', name, absent, '404 BLOB_UNKNOWN'],
  ])('%s in %s of %s is %s', async (method, repository, asked, verdict) => {
    expect(verdictOf(await server.ask(method, `${mount}/${repository}/blobs/${asked}`))).toBe(verdict)
  })
})

describe('a blob', () => {
  test('is found in its repository, not in all of the account', async () => {
    await pushBlob(server, 'blobs/other', 'other')

    expect(verdictOf(await server.ask('GET', `/v2/blobs/other/blobs/${digest}`))).toBe('404 BLOB_UNKNOWN')
  })

  test('of no bytes has no part', async () => {
    const path = `/v2/${name}/blobs/${await pushBlob(server, name, '')}`

    expect((await server.ask('GET', path, { headers: { range: 'bytes=0-0' } })).status).toBe(416)
  })
})

describe.each(mounts)('deleteBlob at %s', (mount) => {
  test('answers 202 without a body, and leaves the blob in other repositories', async () => {
    const shared = await pushBlob(server, name, 'shared')
    await pushBlob(server, 'blobs/sharing', 'shared')
    const reply = await server.ask('DELETE', `${mount}/${name}/blobs/${shared}`)

    expect([reply.status, reply.text, ownHeaders(reply)]).toEqual([202, '', ['content-length']])
    expect((await server.ask('GET', `${mount}/blobs/sharing/blobs/${shared}`)).text).toBe('shared')
  })

  test('answers 405 UNSUPPORTED for a blob that a manifest uses, until that manifest is deleted', async () => {
    const layer = `used at ${mount}`
    const image = await pushApiImage(server, 'blobs/used', 'v1', { layers: [layer] })
    const path = `${mount}/blobs/used/blobs/${digestOf(layer)}`

    expect(verdictOf(await server.ask('DELETE', path))).toBe('405 UNSUPPORTED')
    expect((await server.ask('HEAD', path)).status).toBe(200)
    await server.ask('DELETE', `/v2/blobs/used/manifests/${image.digest}`)
    expect((await server.ask('DELETE', path)).status).toBe(202)
  })
})
