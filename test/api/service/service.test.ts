// enableService, disableService, getStats and checkAuthentication, and the version in their paths: spec.md 2, 4, 7 and 9. What the count of
// images follows is held by ../accounts/statistics-model.test.ts.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { api, mounts, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { garbleUsers, loseMetadata, moveBlobsAway } from '../../support/stores/store-damage.ts'

const server = await startApi()
afterAll(() => server.stop())

describe.each(['enable', 'disable'])('%sService', (verb) => {
  beforeEach(() => server.ask('POST', `${api}/enable`))

  test('answers 200 without a body or a content type, and does not look at a body', async () => {
    const reply = await server.ask('POST', `${api}/${verb}`, { body: 'anything' })

    expect([reply.status, reply.text, reply.headers.get('content-length')]).toEqual([200, '', '0'])
    expect(ownHeaders(reply)).toEqual(['content-length'])
  })

  test.each(['GET', 'PUT', 'DELETE', 'PATCH', 'HEAD'])('is not there for %s', async (method) => {
    const reply = await server.ask(method, `${api}/${verb}`)

    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST'])
  })
})

describe('enableService while a store fails', () => {
  test('answers 503 with an ErrorMessage and Retry-After while the blob folder is gone', async () => {
    const own = await startApi()
    const away = moveBlobsAway(own.dataDir)
    const reply = await own.ask('POST', `${api}/enable`)
    away.moveBack()
    await own.stop()

    expect([reply.status, reply.json()]).toEqual([503, { msg: 'the blob store is unavailable' }])
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('answers 500 with an ErrorMessage that tells nothing, when a stored record is garbled', async () => {
    const own = await startApi({ BERTH_IDENTITY__CACHE: '0s' })
    garbleUsers(own.dataDir)
    const reply = await own.ask('POST', `${api}/enable`)
    await own.stop()

    expect([reply.status, reply.json()]).toEqual([500, { msg: 'internal error' }])
  })
})

describe('getStats', () => {
  test('answers a StatsResponse of an integer and a string as application/json, and nothing else', async () => {
    const reply = await server.ask('GET', `${api}/stats`)

    expect([reply.status, reply.json()]).toEqual([200, { imageCount: 0, serverUrl: server.url }])
    expect(reply.headers.get('content-type')).toBe('application/json')
    expect(ownHeaders(reply)).toEqual(['content-length', 'content-type'])
  })

  test("names the configured public address in place of the request's", async () => {
    const own = await startApi({ BERTH_SERVER__PUBLIC_URL: 'https://registry.example.com' })
    const reply = await own.ask('GET', `${api}/stats`)
    await own.stop()

    expect(reply.json()).toMatchObject({ serverUrl: 'https://registry.example.com' })
  })

  test('gives 0 images for an account that was never used', async () => {
    const key = await addPerson(server, { name: 'stats-newcomer', roles: ['admin'], account: 'stats-new' })

    expect((await server.ask('GET', `${api}/stats`, { key })).json()).toMatchObject({ imageCount: 0 })
  })
})

describe.each(mounts)('checkAuthentication at %s/', (mount) => {
  test('answers {} to a known caller, with the version of the API that older clients look for', async () => {
    const reply = await server.ask('GET', `${mount}/`)

    expect([reply.status, reply.text, reply.headers.get('content-type')]).toEqual([200, '{}', 'application/json'])
    expect(ownHeaders(reply)).toEqual(['content-length', 'content-type'])
    expect(reply.headers.get('docker-distribution-api-version')).toBe('registry/2.0')
  })

  test('is the same without the slash', async () => {
    const [known, anonymous] = [await server.ask('GET', mount), await server.ask('GET', mount, { key: 'none' })]

    expect([known.status, known.text, anonymous.status]).toEqual([200, '{}', 401])
  })

  test('asks for no right at all', async () => {
    const key = await addPerson(server, { name: 'base-nobody', roles: ['a role that gives nothing'] })

    expect((await server.ask('GET', `${mount}/`, { key })).status).toBe(200)
  })

  test('answers 503 and never 401 while credentials cannot be checked', async () => {
    const own = await startApi({ BERTH_IDENTITY__CACHE: '0s' })
    loseMetadata(own.dataDir)
    const reply = await own.ask('GET', `${mount}/`)
    await own.stop()

    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([503, null])
    expect(reply.json()).toMatchObject({ errors: [{ code: 'UNAVAILABLE' }] })
  })
})

// spec.md 9: "Allowed values of {version}: a single value, 2023-12-28".
test.each(['2023-12-27', '2023-12-29', '2024-01-01', 'v2', 'latest', '2023-12-28.', '2021-02-21', '', '%20'])(
  'the version "%s" has nothing, and says so with {msg} alone',
  async (version) => {
    for (const path of ['/enable', '/stats', '/v2/', '/v2/_catalog', '/v2/app/tags/list']) {
      const reply = await server.ask(path === '/enable' ? 'POST' : 'GET', `/api/${version}${path}`)

      // An empty segment is no path at all.
      expect([path, reply.status]).toEqual([path, version === '' ? 400 : 404])
      expect(reply.headers.get('content-type')).toBe('application/json')
      expect(reply.json()).toEqual({ msg: expect.any(String) })
    }
  },
)

test.each([`${api}/nothing`, api])('%s is 404 with {msg}', async (path) => {
  const reply = await server.ask('GET', path)

  expect([reply.status, reply.json()]).toEqual([404, { msg: 'no such endpoint' }])
})
