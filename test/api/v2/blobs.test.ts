// getBlob and deleteBlob: distribution-spec end-2, end-10; RFC 9110, 13 and 14.
import { afterAll, describe, expect, test } from 'bun:test'
import { digestOf, pushApiImage, pushBlob } from '../../support/api/api-images.ts'
import { mounts, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { loseBlobs } from '../../support/stores/store-damage.ts'

const server = await startApi()
afterAll(() => server.stop())

const name = 'blobs/deep/app'
const content = '0123456789'
const digest = await pushBlob(server, name, content)
const absent = `sha256:${'0'.repeat(64)}`

describe.each(mounts)('getBlob at %s', (mount) => {
  const blob = `${mount}/${name}/blobs/${digest}`
  const get = (headers: Readonly<Record<string, string>>) => server.ask('GET', blob, { headers })

  test('gives the bytes', async () => {
    const reply = await server.ask('GET', blob)

    expect([reply.status, reply.text]).toEqual([200, content])
  })

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

  test.each([
    ['bytes=0-3', '0123', 'bytes 0-3/10'],
    ['bytes=3-3', '3', 'bytes 3-3/10'],
    ['bytes=7-', '789', 'bytes 7-9/10'],
    ['bytes=-4', '6789', 'bytes 6-9/10'],
    ['bytes=-40', content, 'bytes 0-9/10'],
    ['bytes=5-500', '56789', 'bytes 5-9/10'],
  ])('gives 206 and the part for Range: %s', async (range, part, contentRange) => {
    const reply = await get({ range })

    expect([reply.status, reply.text, reply.headers.get('content-range')]).toEqual([206, part, contentRange])
    expect(reply.headers.get('content-length')).toBe(String(part.length))
  })

  test.each(['bytes=0-1,4-5', 'lines=1-2', 'bytes=', 'bytes=-', 'nonsense'])(
    'gives all for Range: %s',
    async (range) => {
      const reply = await get({ range })

      expect([reply.status, reply.text, reply.headers.get('content-range')]).toEqual([200, content, null])
    },
  )

  test.each(['bytes=10-', 'bytes=99-100', 'bytes=5-2', 'bytes=-0'])(
    'answers 416 with the size for Range: %s',
    async (range) => {
      const reply = await get({ range })

      expect([reply.status, reply.headers.get('content-range')]).toEqual([416, 'bytes */10'])
      expect(reply.json()).toMatchObject({ errors: [{ code: 'SIZE_INVALID' }] })
    },
  )

  test('gives the part when If-Range names this content', async () => {
    expect((await get({ range: 'bytes=0-3', 'if-range': `"${digest}"` })).status).toBe(206)
  })

  test.each([`"${absent}"`, `W/"${digest}"`, 'Sat, 21 Nov 2026 04:51:15 GMT'])(
    'gives all when If-Range is %s',
    async (condition) => {
      const reply = await get({ range: 'bytes=0-3', 'if-range': condition })

      expect([reply.status, reply.text]).toEqual([200, content])
    },
  )

  test.each(['GET', 'HEAD'])('%s answers 304 without a body when the client has it already', async (method) => {
    const reply = await server.ask(method, blob, { headers: { 'if-none-match': `"${digest}"` } })

    expect([reply.status, reply.text, reply.headers.get('etag')]).toEqual([304, '', `"${digest}"`])
    expect([reply.headers.get('content-type'), reply.headers.get('content-disposition')]).toEqual([null, null])
  })

  test('answers 304 before it looks at a range', async () => {
    expect((await get({ 'if-none-match': `"${digest}"`, range: 'bytes=99-' })).status).toBe(304)
  })

  test('is never encoded, whatever the client would take', async () => {
    const reply = await get({ 'accept-encoding': 'zstd, gzip, deflate' })

    expect([reply.headers.get('content-encoding'), reply.headers.get('content-length')]).toEqual([null, '10'])
  })

  test('answers 404 BLOB_UNKNOWN for a digest that is not here', async () => {
    const reply = await server.ask('GET', `${mount}/${name}/blobs/${absent}`)

    expect([reply.status, reply.json()]).toMatchObject([
      404,
      { errors: [{ code: 'BLOB_UNKNOWN', detail: { digest: absent } }] },
    ])
  })

  test('answers 404 NAME_UNKNOWN for an image that is not here', async () => {
    const reply = await server.ask('GET', `${mount}/no/such/blobs/${digest}`)

    expect([reply.status, reply.json()]).toMatchObject([404, { errors: [{ code: 'NAME_UNKNOWN' }] }])
  })

  test.each(['sha256:short', 'nothing', 'md5:d41d8cd98f00b204e9800998ecf8427e'])(
    'answers 404 BLOB_UNKNOWN for %s, and 400 DIGEST_INVALID when it shall be deleted',
    async (bad) => {
      const [read, deletion] = [
        await server.ask('GET', `${mount}/${name}/blobs/${bad}`),
        await server.ask('DELETE', `${mount}/${name}/blobs/${bad}`),
      ]

      expect([read.status, read.json()]).toMatchObject([404, { errors: [{ code: 'BLOB_UNKNOWN' }] }])
      expect([deletion.status, deletion.json()]).toMatchObject([400, { errors: [{ code: 'DIGEST_INVALID' }] }])
    },
  )
})

describe('which blobs can be had', () => {
  test('are those of the repository, not all of the account', async () => {
    await pushBlob(server, 'blobs/other', 'other')
    const reply = await server.ask('GET', `/v2/blobs/other/blobs/${digest}`)

    expect([reply.status, reply.json()]).toMatchObject([404, { errors: [{ code: 'BLOB_UNKNOWN' }] }])
  })

  test('include the empty one, of which no part can be had', async () => {
    const empty = await pushBlob(server, name, '')
    const [whole, part] = [
      await server.ask('GET', `/v2/${name}/blobs/${empty}`),
      await server.ask('GET', `/v2/${name}/blobs/${empty}`, { headers: { range: 'bytes=0-0' } }),
    ]

    expect([whole.status, whole.headers.get('content-length'), part.status]).toEqual([200, '0', 416])
  })

  test('can be had by the sha512 digest that they were pushed with', async () => {
    const own = digestOf('sha512 content', 'sha512')
    await server.ask('POST', `/v2/${name}/blobs/uploads/?digest=${own}`, { body: 'sha512 content' })
    const reply = await server.ask('GET', `/v2/${name}/blobs/${own}`)

    expect([reply.text, reply.headers.get('docker-content-digest')]).toEqual(['sha512 content', own])
  })
})

describe('getBlob without the bytes', () => {
  test('answers 404 when the bytes of a blob are lost, without their length', async () => {
    const own = await startApi()
    await pushBlob(own, 'app', content)
    loseBlobs(own.dataDir)
    const reply = await own.ask('GET', `/v2/app/blobs/${digest}`)
    await own.stop()

    expect([reply.status, reply.json()]).toMatchObject([404, { errors: [{ code: 'BLOB_UNKNOWN' }] }])
    expect(reply.headers.get('docker-content-digest')).toBeNull()
  })
})

describe.each(mounts)('deleteBlob at %s', (mount) => {
  test('answers 202 without a body, and the blob is gone', async () => {
    const own = await pushBlob(server, name, `deleted at ${mount}`)
    const reply = await server.ask('DELETE', `${mount}/${name}/blobs/${own}`)

    expect([reply.status, reply.text, ownHeaders(reply)]).toEqual([202, '', ['content-length']])
    expect((await server.ask('HEAD', `${mount}/${name}/blobs/${own}`)).status).toBe(404)
  })

  test('leaves the blob in other repositories', async () => {
    const shared = await pushBlob(server, name, 'shared')
    await pushBlob(server, 'blobs/sharing', 'shared')
    await server.ask('DELETE', `${mount}/${name}/blobs/${shared}`)

    expect((await server.ask('GET', `${mount}/blobs/sharing/blobs/${shared}`)).text).toBe('shared')
  })

  test('answers 405 UNSUPPORTED for a blob that a manifest uses, and leaves it', async () => {
    await pushApiImage(server, 'blobs/used', 'v1', { layers: ['used'] })
    const path = `${mount}/blobs/used/blobs/${digestOf('used')}`
    const reply = await server.ask('DELETE', path)

    expect([reply.status, reply.json()]).toMatchObject([405, { errors: [{ code: 'UNSUPPORTED' }] }])
    expect((await server.ask('HEAD', path)).status).toBe(200)
  })

  test('takes the blob once its manifest is gone', async () => {
    const image = await pushApiImage(server, 'blobs/freed', 'v1', { layers: [`freed at ${mount}`] })
    await server.ask('DELETE', `/v2/blobs/freed/manifests/${image.digest}`)

    expect((await server.ask('DELETE', `${mount}/blobs/freed/blobs/${digestOf(`freed at ${mount}`)}`)).status).toBe(202)
  })

  test.each([
    [name, 'BLOB_UNKNOWN'],
    ['no/such', 'NAME_UNKNOWN'],
  ])('answers 404 for an unknown blob of %s', async (repository, code) => {
    const reply = await server.ask('DELETE', `${mount}/${repository}/blobs/${absent}`)

    expect([reply.status, reply.json()]).toMatchObject([404, { errors: [{ code }] }])
  })
})
