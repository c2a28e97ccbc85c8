// getImageTagManifest: spec.md 2, 4 (rule 2) and 7; distribution-spec end-3.
import { afterAll, describe, expect, test } from 'bun:test'
import {
  dockerManifest,
  imageOf,
  indexOf,
  ociIndex,
  ociManifest,
  pushApiImage,
  putManifest,
} from '../../support/api/api-images.ts'
import { mounts, ownHeaders, startApi } from '../../support/api/api-server.ts'

const server = await startApi()
afterAll(() => server.stop())

const name = 'library/deep/app'
const image = await pushApiImage(server, name, 'v1', { layers: ['one', 'two'] })
const docker = await pushApiImage(server, name, 'docker', { mediaType: dockerManifest })
const index = indexOf([image.descriptor, docker.descriptor])
await putManifest(server, name, 'index', index)
const absent = `sha256:${'0'.repeat(64)}`

describe.each(mounts)('getImageTagManifest at %s', (mount) => {
  const manifests = `${mount}/${name}/manifests`

  test.each([
    ['an OCI image', 'v1', image, ociManifest],
    ['a Docker image', 'docker', docker, dockerManifest],
    ['an index', 'index', index, ociIndex],
  ] as const)('gives %s byte for byte, as the type that it was pushed as', async (_, tag, manifest, mediaType) => {
    const reply = await server.ask('GET', `${manifests}/${tag}`)

    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, mediaType])
    expect(reply.text).toBe(manifest.bytes)
  })

  test('gives a ManifestResponse with its entries for an index', async () => {
    const body = (await server.ask('GET', `${manifests}/index`)).json()

    expect(body).toEqual({ schemaVersion: 2, mediaType: ociIndex, manifests: [image.descriptor, docker.descriptor] })
  })

  test('gives the same by digest', async () => {
    const reply = await server.ask('GET', `${manifests}/${image.digest}`)

    expect([reply.status, reply.text]).toEqual([200, image.bytes])
  })

  test('names length, digest and entity tag, and what a browser may do with it', async () => {
    const reply = await server.ask('GET', `${manifests}/v1`)

    expect(ownHeaders(reply)).toEqual([
      'content-length',
      'content-security-policy',
      'content-type',
      'docker-content-digest',
      'etag',
    ])
    expect(reply.headers.get('content-length')).toBe(String(image.bytes.length))
    expect(reply.headers.get('docker-content-digest')).toBe(image.digest)
    expect(reply.headers.get('etag')).toBe(`"${image.digest}"`)
  })

  test('is never encoded, whatever the client would take', async () => {
    const reply = await server.ask('GET', `${manifests}/v1`, { headers: { 'accept-encoding': 'zstd, gzip, deflate' } })

    expect([reply.headers.get('content-encoding'), reply.text]).toEqual([null, image.bytes])
  })

  test.each(['application/json', 'text/html', 'application/vnd.oci.image.index.v1+json;q=0.5', '*/*', ''])(
    'gives what is stored when the client accepts "%s"',
    async (accept) => {
      const reply = await server.ask('GET', `${manifests}/v1`, { headers: { accept } })

      expect([reply.status, reply.headers.get('content-type')]).toEqual([200, ociManifest])
    },
  )

  test.each(['absent', absent])('answers 404 MANIFEST_UNKNOWN for %s', async (reference) => {
    const reply = await server.ask('GET', `${manifests}/${reference}`)

    expect([reply.status, reply.headers.get('content-type')]).toEqual([404, 'application/json'])
    expect(reply.json()).toMatchObject({ errors: [{ code: 'MANIFEST_UNKNOWN' }], msg: 'manifest unknown to registry' })
  })

  test('answers 404 NAME_UNKNOWN for an image that does not exist', async () => {
    const reply = await server.ask('GET', `${mount}/no/such/manifests/v1`)

    expect([reply.status, reply.json()]).toMatchObject([404, { errors: [{ code: 'NAME_UNKNOWN' }] }])
  })

  test.each(['GET', 'HEAD'])('%s of what is absent has no digest', async (method) => {
    const reply = await server.ask(method, `${manifests}/absent`)

    expect([reply.status, reply.headers.get('docker-content-digest'), reply.headers.get('etag')]).toEqual([
      404,
      null,
      null,
    ])
  })

  test.each([
    '-v1',
    'a'.repeat(129),
    'sha256:short',
    `sha256:${'A'.repeat(64)}`,
    'md5:d41d8cd98f00b204e9800998ecf8427e',
  ])('answers 404 MANIFEST_UNKNOWN for the reference %s, which is none', async (reference) => {
    const reply = await server.ask('GET', `${manifests}/${reference}`)

    expect([reply.status, reply.json()]).toMatchObject([404, { errors: [{ code: 'MANIFEST_UNKNOWN' }] }])
    expect((await server.ask('HEAD', `${manifests}/${reference}`)).status).toBe(404)
  })

  test('takes a tag of 128 characters', async () => {
    expect((await server.ask('GET', `${manifests}/${'a'.repeat(128)}`)).status).toBe(404)
  })

  test.each(['App', 'app_', 'a//b', '.app', 'app/-x', 'a'.repeat(256)])(
    'answers 404 for the name %s, which is none',
    async (bad) => {
      const reply = await server.ask('GET', `${mount}/${bad}/manifests/v1`)

      expect([reply.status, reply.json()]).toMatchObject([404, { errors: [{ code: 'NAME_UNKNOWN' }] }])
      expect((await server.ask('HEAD', `${mount}/${bad}/manifests/v1`)).status).toBe(404)
    },
  )

  test.each(['GET', 'HEAD'])('%s answers 304 without a body when the client has it already', async (method) => {
    const reply = await server.ask(method, `${manifests}/v1`, { headers: { 'if-none-match': `"${image.digest}"` } })

    expect([reply.status, reply.text]).toEqual([304, ''])
    expect(reply.headers.get('etag')).toBe(`"${image.digest}"`)
    expect(reply.headers.get('content-type')).toBeNull()
  })

  test.each([`W/"${image.digest}"`, `"other", "${image.digest}"`, '*'])(
    'answers 304 for If-None-Match: %s',
    async (tags) => {
      const reply = await server.ask('GET', `${manifests}/v1`, { headers: { 'if-none-match': tags } })

      expect(reply.status).toBe(304)
    },
  )

  test('answers 200 when the tag has moved on', async () => {
    const reply = await server.ask('GET', `${manifests}/v1`, { headers: { 'if-none-match': `"${docker.digest}"` } })

    expect(reply.status).toBe(200)
  })

  test('answers 404 and not 304 for a missing manifest', async () => {
    const reply = await server.ask('GET', `${manifests}/absent`, { headers: { 'if-none-match': '*' } })

    expect(reply.status).toBe(404)
  })
})

test('a manifest without its own mediaType is served as the type that it was pushed as', async () => {
  const { mediaType: _, ...body } = JSON.parse(imageOf().bytes)
  const bytes = JSON.stringify(body)
  await server.ask('PUT', `/v2/${name}/manifests/plain`, { body: bytes, headers: { 'content-type': ociManifest } })
  const reply = await server.ask('GET', `/v2/${name}/manifests/plain`)

  expect([reply.headers.get('content-type'), reply.text]).toEqual([ociManifest, bytes])
})
