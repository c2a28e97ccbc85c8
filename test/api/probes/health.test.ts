// getHealth and getReadiness: for monitoring, so they need no credentials.
import { afterAll, describe, expect, test } from 'bun:test'
import { version } from '../../../src/app/version.ts'
import { ownHeaders, startApi } from '../../support/api/api-server.ts'
import { loseMetadata, moveBlobsAway } from '../../support/stores/store-damage.ts'

const server = await startApi()
afterAll(() => server.stop())

describe.each([
  ['/healthz', { status: 'ok', version }],
  ['/readyz', { status: 'ready', disk: 'ok' }],
])('%s', (path, body) => {
  test('answers anyone', async () => {
    const reply = await server.ask('GET', path, { key: 'none' })

    expect([reply.status, reply.json()]).toEqual([200, body])
    expect(ownHeaders(reply)).toEqual(['content-length', 'content-type'])
  })
})

describe('getReadiness while a store is unavailable', () => {
  test('answers 503 while the blob folder is gone, and 200 when it is back', async () => {
    const own = await startApi()
    const away = moveBlobsAway(own.dataDir)
    const gone = await own.ask('GET', '/readyz', { key: 'none' })
    away.moveBack()
    const back = await own.ask('GET', '/readyz', { key: 'none' })
    await own.stop()

    expect([gone.status, gone.json(), back.status]).toEqual([503, { msg: 'the blob store is unavailable' }, 200])
  })

  test('getHealth goes on answering 200, because the process is alive', async () => {
    const own = await startApi()
    moveBlobsAway(own.dataDir)
    loseMetadata(own.dataDir)
    const reply = await own.ask('GET', '/healthz', { key: 'none' })
    await own.stop()

    expect(reply.status).toBe(200)
  })
})
