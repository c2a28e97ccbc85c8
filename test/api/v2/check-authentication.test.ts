// checkAuthentication: spec.md 4, rule 4; distribution-spec end-1.
import { afterAll, describe, expect, test } from 'bun:test'
import { mounts, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { loseMetadata } from '../../support/stores/store-damage.ts'

const server = await startApi()
afterAll(() => server.stop())

const challenge = 'Basic realm="Berth", charset="UTF-8"'

describe.each(mounts)('checkAuthentication at %s/', (mount) => {
  test('answers 200 to a caller who is known', async () => {
    const reply = await server.ask('GET', `${mount}/`)

    expect([reply.status, reply.text]).toEqual([200, '{}'])
    expect(ownHeaders(reply)).toEqual(['content-length', 'content-type'])
    expect(reply.headers.get('content-type')).toBe('application/json')
  })

  test('names the version of the API that older clients look for', async () => {
    const reply = await server.ask('GET', `${mount}/`)

    expect(reply.headers.get('docker-distribution-api-version')).toBe('registry/2.0')
  })

  test('answers 401 with one challenge and both forms of the message to a stranger', async () => {
    const reply = await server.ask('GET', `${mount}/`, { key: 'none' })

    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, challenge])
    expect(reply.json()).toEqual({
      errors: [{ code: 'UNAUTHORIZED', message: 'authentication required', detail: {} }],
      msg: 'authentication required',
    })
  })

  test('answers 401 to a key that nobody has', async () => {
    const reply = await server.ask('GET', `${mount}/`, { key: 'berth_nobodys_key_0123456789' })

    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, challenge])
  })

  test('is the same without the slash', async () => {
    const [known, stranger] = [await server.ask('GET', mount), await server.ask('GET', mount, { key: 'none' })]

    expect([known.status, known.text, stranger.status]).toEqual([200, '{}', 401])
  })

  test('HEAD has the headers of GET and no body', async () => {
    const reply = await server.ask('HEAD', `${mount}/`)

    expect([reply.status, reply.text, reply.headers.get('content-length')]).toEqual([200, '', '2'])
  })

  test('HEAD has the challenge too, and no body', async () => {
    const reply = await server.ask('HEAD', `${mount}/`, { key: 'none' })

    expect([reply.status, reply.text, reply.headers.get('www-authenticate')]).toEqual([401, '', challenge])
  })

  test('asks for no right at all', async () => {
    const key = await addPerson(server, { name: 'base-nobody', roles: ['a role that gives nothing'] })

    expect((await server.ask('GET', `${mount}/`, { key })).status).toBe(200)
  })

  test('answers 503 and never 401 while nobody can tell who asks', async () => {
    const own = await startApi({ BERTH_IDENTITY__CACHE: '0s' })
    loseMetadata(own.dataDir)
    const reply = await own.ask('GET', `${mount}/`)
    await own.stop()

    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([503, null])
    expect(reply.json()).toMatchObject({ errors: [{ code: 'UNAVAILABLE' }] })
  })
})
