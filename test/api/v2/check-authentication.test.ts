// checkAuthentication: spec.md 4, rule 4; distribution-spec end-1.
import { afterAll, describe, expect, test } from 'bun:test'
import { mounts, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { loseMetadata } from '../../support/stores/store-damage.ts'

const server = await startApi()
afterAll(() => server.stop())

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
