// A server whose PostgreSQL is killed, refuses, is slow or silent: it answers all requests with 503 in time, and goes
// on by itself. Nothing that it has acknowledged is lost.
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { describeNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { PushingClients } from '../support/clients/pushing-clients.ts'
import { ask } from '../support/clients/registry-client.ts'
import { until } from '../support/clocks/until.ts'
import { PostgresProxy } from '../support/postgres/postgres-proxy.ts'
import { type PostgresServer, postgres, startPostgres } from '../support/postgres/postgres-server.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { auditPostgres } from '../support/stores/store-audit.ts'

const kills = Number(process.env['POSTGRES_KILLS'] ?? 3)
const workers = 4
const temporaryFolder = useTemporaryFolders('postgres-outages')

/** A silent PostgreSQL is given up after 2.5 s. */
const settings = {
  BERTH_SERVER__WORKERS: '1',
  BERTH_METADATA__CONNECTIONS: '4',
  BERTH_METADATA__STATEMENT_TIMEOUT: '500ms',
  BERTH_METADATA__LOCK_TIMEOUT: '300ms',
  BERTH_GARBAGE__EVERY: '500ms',
}

let server: PostgresServer
let url: string
let proxy: PostgresProxy
let berth: BerthProcess
let client: PushingClients
const dataDir = temporaryFolder()

/** What happens while `workers` push and pull; they go on for a while after it. */
async function underLoad(act: () => Promise<void>): Promise<void> {
  let isOver = false
  const pushing = Array.from({ length: workers }, (_, worker) => client.pushUntil(berth, worker, () => isOver))
  await until('there is something to lose', () => client.figures.images >= workers)
  await act()
  const before = client.figures.images
  await until('it goes on by itself', () => client.figures.images >= before + 2 * workers)
  isOver = true
  await Promise.all(pushing)
}

async function expectSound(): Promise<void> {
  const { failures, restartedUploads, retries } = client.figures
  expect(failures).toEqual([])
  expect([...retries.keys()].filter((reason) => reason !== '503')).toEqual([])
  // A server that lost its database in the middle of a chunk cannot record that the writer is gone: the session is busy.
  expect(restartedUploads.filter((text) => !text.includes('another request is writing'))).toEqual([])
  expect(await client.findLosses(berth)).toEqual([])
  expect(await auditPostgres(url, dataDir)).toEqual([])
  expect(berth.output()).not.toContain('"level":"error"')
}

const statusOf = async (asked: Promise<Response>) => (await asked).status

/** One request of each kind that the database has a part in; all at once, and more than it has connections. */
function askAll(): Promise<number[]> {
  const paths = [
    '/v2/load/0/tags/list',
    '/v2/_catalog',
    '/v2/load/0/manifests/none',
    '/v2/load/0/blobs/sha256:' + 'a'.repeat(64),
  ]
  return Promise.all(Array.from({ length: 12 }, (_, index) => statusOf(ask(berth, 'GET', paths[index % 4] ?? ''))))
}

function outages(): void {
  beforeAll(async () => {
    server = await startPostgres()
    url = await server.newDatabase()
    proxy = await PostgresProxy.start(server.port)
    berth = await startBerth({ dataDir, settings: { ...settings, BERTH_METADATA__URL: proxy.through(url) } })
  })

  afterEach(() => {
    console.log(
      `postgres outages: ${client.figures.images} pushes acknowledged, repeated requests:`,
      client.figures.retries,
    )
  })

  afterAll(async () => {
    await berth.stop()
    await proxy.stop()
    await server.stop()
  })

  test('slow, but within the time limit: every request succeeds', async () => {
    client = new PushingClients()
    await underLoad(async () => {
      for (let pulse = 0; pulse < 8; pulse += 1) {
        proxy.hold()
        await Bun.sleep(100)
        proxy.letGo()
        await Bun.sleep(30)
      }
    })

    expect([...client.figures.retries]).toEqual([])
    await expectSound()
  })

  test('too slow: 503, and then it goes on', async () => {
    client = new PushingClients()
    await underLoad(async () => {
      proxy.hold()
      await until('a client got 503', () => client.figures.retries.get('503'))
      proxy.letGo()
    })

    expect(client.figures.retries.get('503')).toBeGreaterThan(0)
    await expectSound()
  })

  test(
    `killed ${kills} times under load, and started again`,
    async () => {
      client = new PushingClients()
      for (let kill = 0; kill < kills; kill += 1) {
        await underLoad(async () => {
          await server.kill()
          await until('a client got 503', () => client.figures.retries.get('503'))
          await server.start()
        })
      }

      expect(client.figures.retries.get('503')).toBeGreaterThanOrEqual(kills)
      await expectSound()
    },
    60_000 + kills * 10_000,
  )

  test('refused: 503 for everything that needs it, and then all is as before', async () => {
    client = new PushingClients()
    const usual = await askAll()
    expect(new Set(usual)).toEqual(new Set([200, 404]))

    await underLoad(async () => {
      proxy.refuse(true)
      expect(new Set(await askAll())).toEqual(new Set([503]))
      expect(await statusOf(fetch(`${berth.url}/readyz`))).toBe(503)
      proxy.refuse(false)
    })

    await until('it is ready', async () => (await statusOf(fetch(`${berth.url}/readyz`))) === 200)
    expect(await askAll()).toEqual(usual)
    await expectSound()
  })

  test('silent: 503 for everything that needs it, no request hangs, and then all is as before', async () => {
    client = new PushingClients()
    const usual = await askAll()

    await underLoad(async () => {
      server.freeze()
      try {
        expect(new Set(await askAll())).toEqual(new Set([503]))
      } finally {
        server.thaw()
      }
    })

    await until('it answers as usual', async () => String(await askAll()) === String(usual))
    await expectSound()
  })

  test('control: a push that was acknowledged and whose tag is gone is reported as lost', async () => {
    client = new PushingClients()
    await client.push(berth)
    await ask(berth, 'DELETE', '/v2/load/0/manifests/tag-1')

    expect(await client.findLosses(berth)).toEqual(['tag load/0:tag-1: points to null'])
  })
}

describeNeeding(postgres, 'PostgreSQL is', outages)
