// Quotas: what they refuse, in which words, and what they never stop.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { imageOf, ociManifest, pushApiImage, pushBlob, putManifest } from '../../support/api/api-images.ts'
import { type ApiServer, api, startApi } from '../../support/api/api-server.ts'
import { setQuota } from '../../support/api/quotas.ts'

let server: ApiServer
beforeAll(async () => {
  server = await startApi()
})
afterAll(() => server.stop())

interface QuotaAnswer {
  readonly limits: Record<string, number | null>
  readonly used: Record<string, number>
  readonly warnings: readonly string[]
}
const quota = async () => (await server.ask('GET', `${api}/quota`)).json<QuotaAnswer>()
const post = (path: string, body = '') => server.ask('POST', `/v2/${path}`, { body })

test('bytes are checked at the start of an upload, during it, and at its end, with the numbers in the error', async () => {
  await pushApiImage(server, 'team/app', 'v1', { config: '{"v":1}', layers: ['x'.repeat(20_000)] })
  const used = (await quota()).used['bytes'] ?? 0
  await setQuota(server, { bytes: used + 50_000 })

  const whole = await post('team/app/blobs/uploads/?digest=sha256:' + '0'.repeat(64), 'y'.repeat(60_000))
  expect([whole.status, whole.json<{ errors: object[] }>().errors[0]]).toEqual([
    403,
    {
      code: 'DENIED',
      message: expect.stringMatching(
        /^quota exceeded: the account has \d\d\.\d KiB of 68\.\d KiB stored, and this push adds 58\.6 KiB; /,
      ),
      detail: { of: 'bytes', used, max: used + 50_000, needed: 60_000 },
    },
  ])
  const location = (await post('team/app/blobs/uploads/')).headers.get('location') ?? ''
  expect((await server.ask('PATCH', location, { body: 'y'.repeat(30_000) })).status).toBe(202)
  expect((await server.ask('PATCH', location, { body: 'y'.repeat(30_000) })).status).toBe(403)
  // Another upload takes the room meanwhile.
  await pushBlob(server, 'team/app', 'z'.repeat(45_000))
  const digest = new Bun.CryptoHasher('sha256').update('y'.repeat(30_000)).digest('hex')
  expect((await server.ask('PUT', `${location}?digest=sha256:${digest}`)).status).toBe(403)
  expect((await server.ask('GET', location)).headers.get('range')).toBe('0-29999')
  expect((await quota()).used['bytes']).toBe(used + 45_000)
  expect((await quota()).warnings).toEqual(['bytes'])
})

test('a full quota stops no pulls, deletions, moves of tags and mounts', async () => {
  await setQuota(server, {})
  const first = await pushApiImage(server, 'full/app', 'v1', { config: '{"v":"first"}' })
  const second = await pushApiImage(server, 'full/app', 'v2', { config: '{"v":"second"}' })
  await setQuota(server, { bytes: 1, repositories: 0, tags: 0 })

  expect((await server.ask('GET', '/v2/full/app/manifests/v1')).status).toBe(200)
  const move = await server.ask('PUT', '/v2/full/app/manifests/v1', {
    headers: { 'content-type': ociManifest },
    body: second.bytes,
  })
  expect(move.status).toBe(201)
  const mount = `full/app/blobs/uploads/?mount=${second.descriptor.digest}`
  expect([(await post(mount)).status, (await post('full/app/blobs/uploads/')).status]).toEqual([403, 403])
  expect((await server.ask('DELETE', `/v2/full/app/manifests/${first.digest}`)).status).toBe(202)
  expect((await server.ask('DELETE', '/v2/full/app/manifests/v2')).status).toBe(202)
  await setQuota(server, {})
})

test('tags and repositories have limits, and nothing of a refused push stays', async () => {
  const before = (await quota()).used
  await setQuota(server, { repositories: (before['repositories'] ?? 0) + 1, tags: (before['tags'] ?? 0) + 2 })
  const image = await pushApiImage(server, 'new/app', 'v1', { config: '{"v":"tags"}' })
  const more = imageOf({ config: '{"v":"tags"}', annotations: { other: 'manifest' } })

  expect((await putManifest(server, 'new/app', 'v2', image)).status).toBe(201)
  const refused = await putManifest(server, 'new/app', 'v3', more)
  expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('tags, and this push adds 1')])
  expect((await server.ask('GET', `/v2/new/app/manifests/${more.digest}`)).status).toBe(404)
  expect((await putManifest(server, 'new/app', 'v2', image)).status).toBe(201)
  const opened = await post('other/app/blobs/uploads/')
  expect([opened.status, opened.text]).toEqual([403, expect.stringContaining('repositories, and this push adds 1')])
  expect((await quota()).warnings).toEqual(['repositories', 'tags'])
})
