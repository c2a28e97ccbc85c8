// getImageTagManifest: spec.md 2, 4 (rule 2) and 7; distribution-spec end-3. deleteManifest: end-9; decisions.md 3. The plain
// cases are in ../../conformance.
import { afterAll, describe, expect, test } from 'bun:test'
import {
  dockerManifest,
  imageOf,
  indexOf,
  ociManifest,
  pushApiImage,
  putManifest,
} from '../../support/api/api-images.ts'
import { mounts, ownHeaders, startApi, verdictOf } from '../../support/api/api-server.ts'

const server = await startApi()
afterAll(() => server.stop())

const name = 'library/deep/app'
const image = await pushApiImage(server, name, 'v1', { layers: ['one', 'two'] })
const docker = await pushApiImage(server, name, 'docker', { mediaType: dockerManifest })
const absent = `sha256:${'0'.repeat(64)}`

describe.each(mounts)('getImageTagManifest at %s', (mount) => {
  const manifests = `${mount}/${name}/manifests`

  test('gives a Docker image byte for byte, as the type that it was pushed as', async () => {
    const reply = await server.ask('GET', `${manifests}/docker`)

    expect([reply.headers.get('content-type'), reply.text]).toEqual([dockerManifest, docker.bytes])
  })

  test('names length, digest and entity tag, and tells browsers what to do with it', async () => {
    const reply = await server.ask('GET', `${manifests}/v1`)

    expect(ownHeaders(reply)).toEqual([
      'content-length',
      'content-security-policy',
      'content-type',
      'docker-content-digest',
      'etag',
    ])
    expect(reply.headers.get('etag')).toBe(`"${image.digest}"`)
  })

  test('comes whole and is never encoded, whatever the client would take', async () => {
    const headers = { 'accept-encoding': 'zstd, gzip, deflate', range: 'bytes=0-5' }
    const reply = await server.ask('GET', `${manifests}/v1`, { headers })

    expect([reply.status, reply.headers.get('content-encoding'), reply.text]).toEqual([200, null, image.bytes])
  })

  test.each(['application/json', 'text/html', 'application/vnd.oci.image.index.v1+json;q=0.5', '*/*', ''])(
    'gives what is stored when the client accepts "%s"',
    async (accept) => {
      const reply = await server.ask('GET', `${manifests}/v1`, { headers: { accept } })

      expect([reply.status, reply.headers.get('content-type')]).toEqual([200, ociManifest])
    },
  )

  test.each([
    [name, 'absent', 'MANIFEST_UNKNOWN'],
    [name, absent, 'MANIFEST_UNKNOWN'],
    [name, 'a'.repeat(128), 'MANIFEST_UNKNOWN'],
    ['no/such', 'v1', 'NAME_UNKNOWN'],
  ])('answers 404 without a digest for what is not there: %s:%s is %s', async (repository, reference, code) => {
    const path = `${mount}/${repository}/manifests/${reference}`
    const [reply, head] = [await server.ask('GET', path), await server.ask('HEAD', path)]

    expect([verdictOf(reply), head.status]).toEqual([`404 ${code}`, 404])
    for (const { headers } of [reply, head]) {
      expect([headers.get('docker-content-digest'), headers.get('etag')]).toEqual([null, null])
    }
  })

  test.each(['GET', 'HEAD'])('%s answers 304 without a body when the client has it already', async (method) => {
    const reply = await server.ask(method, `${manifests}/v1`, { headers: { 'if-none-match': `"${image.digest}"` } })

    expect([reply.status, reply.text]).toEqual([304, ''])
    expect(reply.headers.get('etag')).toBe(`"${image.digest}"`)
    expect(reply.headers.get('content-type')).toBeNull()
  })

  test.each([
    ['v1', `W/"${image.digest}"`, 304],
    ['v1', `"other", "${image.digest}"`, 304],
    ['v1', '*', 304],
    ['v1', `"${docker.digest}"`, 200],
    ['absent', '*', 404],
  ])('of %s with If-None-Match: %s is %d', async (tag, tags, status) => {
    const reply = await server.ask('GET', `${manifests}/${tag}`, { headers: { 'if-none-match': tags } })

    expect(reply.status).toBe(status)
  })
})

test('a manifest without its own mediaType is served as the type that it was pushed as', async () => {
  const { mediaType: _, ...body } = JSON.parse(imageOf().bytes)
  const bytes = JSON.stringify(body)
  await server.ask('PUT', `/v2/${name}/manifests/plain`, { body: bytes, headers: { 'content-type': ociManifest } })
  const reply = await server.ask('GET', `/v2/${name}/manifests/plain`)

  expect([reply.headers.get('content-type'), reply.text]).toEqual([ociManifest, bytes])
})

describe.each(mounts)('deleteManifest at %s', (mount) => {
  const repository = mount === '/v2' ? 'delete/root' : 'delete/prefix'
  const manifests = `${mount}/${repository}/manifests`
  /** An image of its own for each test. */
  const push = (tag: string) => pushApiImage(server, repository, tag, { annotations: { tag } })
  const statusOf = async (reference: string) => (await server.ask('GET', `${manifests}/${reference}`)).status

  test('by tag answers 202 without a body', async () => {
    await push('gone')
    const reply = await server.ask('DELETE', `${manifests}/gone`)

    expect([reply.status, reply.text, ownHeaders(reply)]).toEqual([202, '', ['content-length']])
  })

  test('by tag leaves the other tags of the manifest', async () => {
    const image = await push('one')
    await putManifest(server, repository, 'other', image)
    await server.ask('DELETE', `${manifests}/one`)

    expect([await statusOf('one'), await statusOf('other')]).toEqual([404, 200])
  })

  test('by digest takes the manifest away, and all its tags', async () => {
    const image = await push('first')
    await putManifest(server, repository, 'second', image)
    const reply = await server.ask('DELETE', `${manifests}/${image.digest}`)

    expect(reply.status).toBe(202)
    expect([await statusOf(image.digest), await statusOf('first'), await statusOf('second')]).toEqual([404, 404, 404])
  })

  test.each(['never', `sha256:${'1'.repeat(64)}`])('answers 404 for %s', async (reference) => {
    await push('there')
    const [reply, elsewhere] = [
      await server.ask('DELETE', `${manifests}/${reference}`),
      await server.ask('DELETE', `${mount}/no/such/manifests/${reference}`),
    ]

    expect([verdictOf(reply), verdictOf(elsewhere)]).toEqual(['404 MANIFEST_UNKNOWN', '404 NAME_UNKNOWN'])
  })

  test('answers 404 the second time', async () => {
    const { digest } = await push('twice')
    await server.ask('DELETE', `${manifests}/${digest}`)

    expect((await server.ask('DELETE', `${manifests}/${digest}`)).status).toBe(404)
  })

  test('answers 405 UNSUPPORTED for a manifest that an index lists, until the index is deleted', async () => {
    const child = await push('child')
    const index = indexOf([child.descriptor])
    await putManifest(server, repository, 'index', index)

    expect(verdictOf(await server.ask('DELETE', `${manifests}/${child.digest}`))).toBe('405 UNSUPPORTED')
    expect(await statusOf(child.digest)).toBe(200)
    // The tag of a listed manifest can go before.
    expect((await server.ask('DELETE', `${manifests}/child`)).status).toBe(202)
    await server.ask('DELETE', `${manifests}/${index.digest}`)
    expect((await server.ask('DELETE', `${manifests}/${child.digest}`)).status).toBe(202)
  })
})

test('a listed manifest can be deleted with manifests.missing_content: allow', async () => {
  const own = await startApi({ BERTH_MANIFESTS__MISSING_CONTENT: 'allow' })
  const child = await pushApiImage(own, 'app', 'child')
  await putManifest(own, 'app', 'index', indexOf([child.descriptor]))
  const reply = await own.ask('DELETE', `/v2/app/manifests/${child.digest}`)
  const index = await own.ask('GET', '/v2/app/manifests/index')
  await own.stop()

  expect([reply.status, index.status]).toEqual([202, 200])
})

test('a deleted manifest can be pushed again', async () => {
  const image = await pushApiImage(server, 'delete/again', 'v1')
  await server.ask('DELETE', `/v2/delete/again/manifests/${image.digest}`)

  expect((await putManifest(server, 'delete/again', 'v1', imageOf())).status).toBe(201)
})
