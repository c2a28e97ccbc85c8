// putImageTagManifest: spec.md 4 (rule 1) and 7; distribution-spec end-7a, end-7b. The plain cases are in ../../conformance.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  digestOf,
  dockerManifest,
  imageOf,
  indexOf,
  ociIndex,
  ociManifest,
  pushApiImage,
  pushBlob,
  putManifest,
} from '../../support/api/api-images.ts'
import { mounts, ownHeaders, startApi, verdictOf } from '../../support/api/api-server.ts'

const server = await startApi()
afterAll(() => server.stop())

const name = 'put/deep/app'
const image = imageOf({ layers: ['one'] })
beforeAll(async () => {
  for (const content of ['{}', 'one']) await pushBlob(server, name, content)
})

describe.each(mounts)('putImageTagManifest at %s', (mount) => {
  const put = (reference: string, body: string, contentType: string = ociManifest) =>
    server.ask('PUT', `${mount}/${name}/manifests/${reference}`, { body, headers: { 'content-type': contentType } })

  test('answers 201 without a body, and says where the manifest is', async () => {
    const reply = await put('v1', image.bytes)

    expect([reply.status, reply.text]).toEqual([201, ''])
    expect(ownHeaders(reply)).toEqual(['content-length', 'docker-content-digest', 'location'])
    expect(reply.headers.get('docker-content-digest')).toBe(image.digest)
    expect(reply.headers.get('location')).toBe(`${mount}/${name}/manifests/${image.digest}`)
  })

  test.each([
    ['a Docker image', imageOf({ mediaType: dockerManifest }).bytes, dockerManifest],
    [
      'a type with parameters, and in capitals',
      image.bytes,
      'Application/vnd.OCI.image.manifest.v1+json; charset=utf-8',
    ],
  ])('accepts %s', async (_, body, mediaType) => {
    expect((await put('type', body, mediaType)).status).toBe(201)
  })

  test.each([
    'application/json',
    'application/vnd.docker.distribution.manifest.list.v2+json',
    'application/vnd.docker.distribution.manifest.v1+prettyjws',
    'application/vnd.oci.artifact.manifest.v1+json',
    'text/plain',
  ])('answers 400 MANIFEST_INVALID to %s', async (mediaType) => {
    expect(verdictOf(await put('other-type', image.bytes, mediaType))).toBe('400 MANIFEST_INVALID')
  })

  // ../../bad-input/json.test.ts has more bodies that are no JSON, or are JSON that readers understand differently.
  test.each([
    ['nothing', ''],
    ['a string', '"manifest"'],
    ['an object that is no manifest', '{}'],
    ['schema version 1', '{"schemaVersion":1}'],
    ['the fields of an index in an image', JSON.stringify({ ...JSON.parse(image.bytes), manifests: [] })],
    ['another mediaType than its content type', imageOf({ mediaType: dockerManifest }).bytes],
  ])('answers 400 MANIFEST_INVALID to %s, and registers nothing', async (_, body) => {
    expect(verdictOf(await put('invalid', body))).toBe('400 MANIFEST_INVALID')
    expect((await server.ask('GET', `${mount}/${name}/manifests/invalid`)).status).toBe(404)
  })

  test('answers 400 MANIFEST_BLOB_UNKNOWN with one entry for each digest that is missing', async () => {
    const missing = imageOf({ config: 'no config', layers: ['one', 'no layer'] })
    const reply = await put('missing', missing.bytes)

    expect(reply.status).toBe(400)
    expect(
      reply.json<{ errors: { code: string; detail: unknown }[] }>().errors.map(({ code, detail }) => [code, detail]),
    ).toEqual([
      ['MANIFEST_BLOB_UNKNOWN', { digest: digestOf('no config') }],
      ['MANIFEST_BLOB_UNKNOWN', { digest: digestOf('no layer') }],
    ])
  })

  test('answers 400 MANIFEST_BLOB_UNKNOWN to an index of manifests that are missing', async () => {
    const { bytes } = indexOf([imageOf({ config: 'x' }).descriptor])

    expect(verdictOf(await put('missing-child', bytes, ociIndex))).toBe('400 MANIFEST_BLOB_UNKNOWN')
  })

  test('names a tag once in OCI-Tag that is given twice', async () => {
    const reply = await put(`${image.digest}?tag=t1&tag=t2&tag=t1`, image.bytes)

    expect([reply.status, reply.headers.get('oci-tag')]).toEqual([201, 't1, t2'])
  })

  test('answers 400 to tag parameters of a push by tag', async () => {
    const reply = await put('v1?tag=t3', image.bytes)

    expect([reply.status, reply.headers.get('oci-tag')]).toEqual([400, null])
  })

  test('sets no tag at all when one of the tag parameters is invalid', async () => {
    const reply = await put(`${image.digest}?tag=fine&tag=-bad`, image.bytes)

    expect([reply.status, (await server.ask('GET', `${mount}/${name}/manifests/fine`)).status]).toEqual([400, 404])
  })

  test('moves a tag, and the manifest that it left can still be had by digest', async () => {
    const other = imageOf({ annotations: { moved: mount } })
    await put('moving', image.bytes)
    await put('moving', other.bytes)
    const [byTag, byDigest] = [
      await server.ask('GET', `${mount}/${name}/manifests/moving`),
      await server.ask('GET', `${mount}/${name}/manifests/${image.digest}`),
    ]

    expect([byTag.text, byDigest.text]).toEqual([other.bytes, image.bytes])
  })

  test('moves a tag from an image to an index and back', async () => {
    await put('kind', image.bytes)
    const toIndex = await put('kind', indexOf([image.descriptor]).bytes, ociIndex)
    const back = await put('kind', image.bytes)

    expect([toIndex.status, back.status]).toEqual([201, 201])
  })
})

describe('the policies of a push', () => {
  test('take as many tag parameters as the limit, and refuse one more', async () => {
    const { digest, bytes } = await pushApiImage(server, 'put/tagged', 'v1')
    const put = (count: number) => {
      const query = Array.from({ length: count }, (_, number) => `tag=t${number}`).join('&')
      const headers = { 'content-type': ociManifest }
      return server.ask('PUT', `/v2/put/tagged/manifests/${digest}?${query}`, { body: bytes, headers })
    }

    expect([(await put(16)).status, (await put(17)).status]).toEqual([201, 414])
  })

  test('accept a manifest list once manifests.additional_media_types names it', async () => {
    const list = 'application/vnd.docker.distribution.manifest.list.v2+json'
    const own = await startApi({ BERTH_MANIFESTS__ADDITIONAL_MEDIA_TYPES: list })
    const body = JSON.stringify({ schemaVersion: 2, mediaType: list, manifests: [] })
    const reply = await own.ask('PUT', '/v2/app/manifests/list', { body, headers: { 'content-type': list } })
    const found = await own.ask('GET', '/v2/app/manifests/list')
    await own.stop()

    expect([reply.status, found.headers.get('content-type'), found.text]).toEqual([201, list, body])
  })

  test('accept missing content with manifests.missing_content: allow', async () => {
    const own = await startApi({ BERTH_MANIFESTS__MISSING_CONTENT: 'allow' })
    const reply = await putManifest(own, 'app', 'v1', imageOf({ layers: ['nowhere'] }))
    await own.stop()

    expect(reply.status).toBe(201)
  })

  test('always accept a layer that is fetched from elsewhere', async () => {
    await pushApiImage(server, 'put/foreign', 'base')
    const body = JSON.parse(imageOf({ layers: ['windows'] }).bytes)
    body.layers[0].urls = ['https://example.com/layer']
    const reply = await server.ask('PUT', '/v2/put/foreign/manifests/v1', {
      body: JSON.stringify(body),
      headers: { 'content-type': ociManifest },
    })

    expect(reply.status).toBe(201)
  })

  test('want the content in the same repository, not just in the account', async () => {
    await pushBlob(server, 'put/elsewhere', 'elsewhere')
    await pushBlob(server, 'put/here', '{}')
    const reply = await putManifest(server, 'put/here', 'v1', imageOf({ layers: ['elsewhere'] }))

    expect(verdictOf(reply)).toBe('400 MANIFEST_BLOB_UNKNOWN')
  })
})
