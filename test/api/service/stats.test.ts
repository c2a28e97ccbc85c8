// getStats: spec.md 2, 4 and 7, and what the numbers follow.
import { afterAll, describe, expect, test } from 'bun:test'
import { imageOf, pushApiImage, pushBlob, putManifest } from '../../support/api/api-images.ts'
import { api, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { collect, openWorld } from '../../support/stores/use-case-world.ts'

const server = await startApi()
afterAll(() => server.stop())

async function imageCount(key?: string): Promise<number> {
  const reply = await server.ask('GET', `${api}/stats`, key === undefined ? {} : { key })
  return reply.json<{ imageCount: number }>().imageCount
}

/** How much the count differs after `act`. */
async function changeBy(act: () => Promise<unknown>): Promise<number> {
  const before = await imageCount()
  await act()
  return (await imageCount()) - before
}

describe('getStats', () => {
  test('answers a StatsResponse of an integer and a string, and nothing else', async () => {
    const reply = await server.ask('GET', `${api}/stats`)
    const body = reply.json<Record<string, unknown>>()

    expect(reply.status).toBe(200)
    expect(Object.keys(body).sort()).toEqual(['imageCount', 'serverUrl'])
    expect(Number.isInteger(body['imageCount'])).toBe(true)
    expect(body['serverUrl']).toBe(server.url)
  })

  test('has exactly the content type application/json, and its length', async () => {
    const reply = await server.ask('GET', `${api}/stats`)

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

    expect(await imageCount(key)).toBe(0)
  })
})

describe('imageCount', () => {
  test('counts a repository once, however many push to it first and at once', async () => {
    const images = Array.from({ length: 10 }, (_, number) => imageOf({ annotations: { number: String(number) } }))
    await pushBlob(server, 'stats/at-once', '{}')

    expect(
      await changeBy(() =>
        Promise.all(images.map((image) => putManifest(server, 'stats/at-once', image.digest, image))),
      ),
    ).toBe(1)
    expect(
      await changeBy(() =>
        Promise.all(images.map(({ digest }) => server.ask('DELETE', `/v2/stats/at-once/manifests/${digest}`))),
      ),
    ).toBe(-1)
  })

  test('counts many repositories that are pushed to first at once, each once', async () => {
    const names = Array.from({ length: 10 }, (_, number) => `stats/many-${number}`)

    expect(await changeBy(() => Promise.all(names.map((name) => pushApiImage(server, name, 'a'))))).toBe(10)
  })

  test('stays when garbage is collected', async () => {
    const image = await pushApiImage(server, 'stats/emptied', 'a', { layers: ['garbage soon'] })
    await server.ask('DELETE', `/v2/stats/emptied/manifests/${image.digest}`)
    const world = await openWorld(server.dataDir)

    expect(
      await changeBy(async () => {
        const { blobs } = await collect(world, { leaseMs: 0 })
        expect(blobs).toBeGreaterThan(0)
      }),
    ).toBe(0)
    await world.metadata.close()
    expect(await changeBy(() => pushApiImage(server, 'stats/emptied', 'a'))).toBe(1)
  })

  test('stays and can be asked for while the account is disabled', async () => {
    await pushApiImage(server, 'stats/disabled', 'a')

    expect(await changeBy(() => server.ask('POST', `${api}/disable`))).toBe(0)
    expect(await changeBy(() => putManifest(server, 'stats/disabled-new', 'a', imageOf()))).toBe(0)
    expect(await changeBy(() => server.ask('POST', `${api}/enable`))).toBe(0)
  })
})
