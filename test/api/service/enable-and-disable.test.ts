// enableService and disableService: spec.md 4 and 7.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { api, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { garbleUsers, moveBlobsAway } from '../../support/stores/store-damage.ts'

const server = await startApi()
afterAll(() => server.stop())

describe.each(['enable', 'disable'])('%sService', (verb) => {
  beforeEach(() => server.ask('POST', `${api}/enable`))

  test('answers 200 without a body', async () => {
    const reply = await server.ask('POST', `${api}/${verb}`)

    expect([reply.status, reply.text]).toEqual([200, ''])
  })

  test('has no content type, because it has no content', async () => {
    const reply = await server.ask('POST', `${api}/${verb}`)

    expect(ownHeaders(reply)).toEqual(['content-length'])
    expect(reply.headers.get('content-length')).toBe('0')
  })

  test('does not look at a body', async () => {
    const reply = await server.ask('POST', `${api}/${verb}`, { body: 'anything' })

    expect(reply.status).toBe(200)
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

    expect(reply.status).toBe(503)
    expect(reply.headers.get('content-type')).toBe('application/json')
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(reply.json()).toEqual({ msg: 'the blob store is unavailable' })
  })

  test('answers 500 with an ErrorMessage that tells nothing, when a stored record is garbled', async () => {
    const own = await startApi({ BERTH_IDENTITY__CACHE: '0s' })
    garbleUsers(own.dataDir)
    const reply = await own.ask('POST', `${api}/enable`)
    await own.stop()

    expect(reply.status).toBe(500)
    expect(reply.headers.get('content-type')).toBe('application/json')
    expect(reply.json()).toEqual({ msg: 'internal error' })
  })
})
