// What "enabled" means, decisions.md 4: never enabled -> enabled <-> disabled.
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { imageOf, pushImage, startUpload } from '../../support/api-images.ts'
import { api, mounts, startApi } from '../../support/api-server.ts'
import { addPerson } from '../../support/people.ts'

const server = await startApi()
afterAll(() => server.stop())

const { digest } = await pushImage(server, 'states/app', 'v1')
const uploadId = (await startUpload(server, 'states/app')).split('/').at(-1) ?? ''

/** Every registry operation but the check, each as it would succeed. */
const registryOperations = [
  ['GET', '/_catalog'],
  ['GET', '/states/app/manifests/v1'],
  ['HEAD', '/states/app/manifests/v1'],
  ['PUT', '/states/app/manifests/v2'],
  ['DELETE', '/states/app/manifests/v1'],
  ['GET', '/states/app/tags/list'],
  ['GET', `/states/app/referrers/${digest}`],
  ['GET', `/states/app/blobs/${digest}`],
  ['HEAD', `/states/app/blobs/${digest}`],
  ['DELETE', `/states/app/blobs/${digest}`],
  ['POST', '/states/app/blobs/uploads/'],
  ['GET', `/states/app/blobs/uploads/${uploadId}`],
  ['PATCH', `/states/app/blobs/uploads/${uploadId}`],
  ['PUT', `/states/app/blobs/uploads/${uploadId}?digest=${digest}`],
  ['DELETE', `/states/app/blobs/uploads/${uploadId}`],
] as const

const refused = {
  errors: [{ code: 'DENIED', message: 'the registry is disabled for this account', detail: {} }],
  msg: 'the registry is disabled for this account',
}
const withBody = { headers: { 'content-type': imageOf().mediaType }, body: imageOf().bytes }

describe('a disabled account', () => {
  beforeEach(() => server.ask('POST', `${api}/disable`))
  afterEach(() => server.ask('POST', `${api}/enable`))

  describe.each(mounts)('at %s', (mount) => {
    test.each(registryOperations)('%s %s answers 403 DENIED', async (method, path) => {
      const reply = await server.ask(method, mount + path, method === 'PUT' || method === 'PATCH' ? withBody : {})

      expect(reply.status).toBe(403)
      if (method !== 'HEAD') expect(reply.json()).toEqual(refused)
    })

    test('checkAuthentication answers 200, so that logins work', async () => {
      expect((await server.ask('GET', `${mount}/`)).status).toBe(200)
    })

    test('checkAuthentication answers 401 to a stranger all the same', async () => {
      expect((await server.ask('GET', `${mount}/`, { key: 'none' })).status).toBe(401)
    })
  })

  test('getStats answers, and with the same number as before', async () => {
    const reply = await server.ask('GET', `${api}/stats`)

    expect([reply.status, reply.json<{ imageCount: number }>().imageCount]).toEqual([200, 1])
  })

  test('has lost nothing when it is enabled again', async () => {
    await server.ask('POST', `${api}/enable`)
    const [manifest, upload] = [
      await server.ask('GET', '/v2/states/app/manifests/v1'),
      await server.ask('GET', `/v2/states/app/blobs/uploads/${uploadId}`),
    ]

    expect([manifest.status, upload.status]).toEqual([200, 204])
  })

  test('leaves other accounts as they are', async () => {
    const key = await addPerson(server, { name: 'states-other', roles: ['admin'], account: 'another' })

    expect((await server.ask('GET', '/v2/_catalog', { key })).status).toBe(200)
  })
})

describe('an account that was never enabled', () => {
  test('is enabled by its first use', async () => {
    const key = await addPerson(server, { name: 'states-new', roles: ['admin'], account: 'new' })

    expect((await server.ask('POST', '/v2/states/app/blobs/uploads/', { key })).status).toBe(202)
  })

  test('is refused like a disabled one with accounts.auto_enable off', async () => {
    const own = await startApi({ BERTH_ACCOUNTS__AUTO_ENABLE: 'false' })
    const reply = await own.ask('GET', '/v2/_catalog')
    await own.stop()

    expect([reply.status, reply.json()]).toEqual([403, refused])
  })

  test('with accounts.auto_enable off can still log in and ask for its statistics', async () => {
    const own = await startApi({ BERTH_ACCOUNTS__AUTO_ENABLE: 'false' })
    const [check, stats] = [await own.ask('GET', '/v2/'), await own.ask('GET', `${api}/stats`)]
    await own.stop()

    expect([check.status, stats.status, stats.json()]).toMatchObject([200, 200, { imageCount: 0 }])
  })

  test('with accounts.auto_enable off is served once enableService has answered', async () => {
    const own = await startApi({ BERTH_ACCOUNTS__AUTO_ENABLE: 'false' })
    await own.ask('POST', `${api}/enable`)
    const reply = await own.ask('GET', '/v2/_catalog')
    await own.stop()

    expect(reply.status).toBe(200)
  })

  test('can be disabled before its first use, and its first use does not enable it', async () => {
    const key = await addPerson(server, { name: 'states-early', roles: ['admin'], account: 'early' })
    await server.ask('POST', `${api}/disable`, { key })

    expect((await server.ask('GET', '/v2/_catalog', { key })).status).toBe(403)
  })
})
