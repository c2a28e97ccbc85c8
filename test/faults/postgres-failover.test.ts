// The primary fails under load and its standby replaces it, at the same address: a proxy stands for whatever moves it.
// With synchronous replication, what was acknowledged is there afterwards.
import { afterEach, expect, test } from 'bun:test'
import { describeNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { PushingClients } from '../support/clients/pushing-clients.ts'
import { until } from '../support/clocks/until.ts'
import { PostgresProxy } from '../support/postgres/postgres-proxy.ts'
import { type PostgresServer, postgres, startPostgres } from '../support/postgres/postgres-server.ts'
import { startBerth } from '../support/server/berth-process.ts'
import { auditPostgres } from '../support/stores/store-audit.ts'

const workers = 4
const temporaryFolder = useTemporaryFolders('postgres-failover')
const settings = {
  BERTH_METADATA__CONNECTIONS: '6',
  BERTH_METADATA__STATEMENT_TIMEOUT: '500ms',
  BERTH_METADATA__LOCK_TIMEOUT: '300ms',
  BERTH_GARBAGE__EVERY: '0s',
}

const toStop: { stop(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const running of toStop.splice(0).toReversed()) await running.stop()
})

function stopping<T extends { stop(): Promise<unknown> }>(running: T): T {
  toStop.push(running)
  return running
}

/** A primary with a standby, a server that reaches the primary by way of a proxy, and a client. */
async function open() {
  const primary = stopping(await startPostgres())
  const url = await primary.newDatabase()
  const standby = stopping(await primary.makeStandby('second'))
  const proxy = stopping(await PostgresProxy.start(primary.port))
  const dataDir = temporaryFolder()
  const berth = stopping(
    await startBerth({ dataDir, settings: { ...settings, BERTH_METADATA__URL: proxy.through(url) } }),
  )
  const audit = () => auditPostgres(standby.urlOf('berth_1'), dataDir)
  return { primary, standby, proxy, berth, audit, client: new PushingClients() }
}

/** A commit is acknowledged when the standby has it. */
async function replicateSynchronously(primary: PostgresServer): Promise<void> {
  await primary.ask("ALTER SYSTEM SET synchronous_standby_names = 'second'")
  await primary.ask('SELECT pg_reload_conf()')
  await until('the standby is synchronous', async () => {
    const [row] = await primary.ask<{ sync_state: string }>('SELECT sync_state FROM pg_stat_replication')
    return row?.sync_state === 'sync'
  })
}

function failover(): void {
  test('loses nothing of what was acknowledged, and is noticed as 503 alone', async () => {
    const { primary, standby, proxy, berth, audit, client } = await open()
    await replicateSynchronously(primary)
    let isOver = false
    const { figures } = client
    const pushing = Array.from({ length: workers }, (_, worker) => client.pushUntil(berth, worker, () => isOver))
    await until('there is something to lose', () => figures.images >= 3 * workers)

    await primary.kill()
    const before = figures.images
    // The address moves first: for a while it leads to a server that answers, and takes no writes.
    proxy.leadTo(standby.port)
    const told = figures.retries.get('503') ?? 0
    await until('some were told to come again', () => (figures.retries.get('503') ?? 0) >= told + workers)
    expect(figures.images).toBeLessThanOrEqual(before + workers)
    await standby.ask('SELECT pg_promote()')
    await until('it goes on by itself', () => figures.images >= before + 4 * workers)
    isOver = true

    await Promise.all(pushing)
    expect(figures.failures).toEqual([])
    expect([...figures.retries.keys()].filter((reason) => reason !== '503')).toEqual([])
    expect(figures.restartedUploads.filter((text) => !text.includes('another request is writing'))).toEqual([])
    expect(await client.findLosses(berth)).toEqual([])
    expect(await audit()).toEqual([])
    expect(berth.output()).not.toContain('"level":"error"')
    console.log(`postgres failover: ${before} pushes acknowledged before,`, figures)
  }, 60_000)

  test('waits for the standby that must have it: 503 while that is silent, and then it goes on', async () => {
    const { primary, standby, berth, client, audit } = await open()
    await replicateSynchronously(primary)
    await client.push(berth)

    standby.freeze()
    const pushing = client.push(berth)
    try {
      await until('the client was told', () => client.figures.retries.get('503'))
    } finally {
      standby.thaw()
    }
    await pushing

    expect(client.figures.failures).toEqual([])
    expect(await client.findLosses(berth)).toEqual([])
    expect(await audit()).toEqual([])
  }, 60_000)

  test('control: without synchronous replication, what the standby has not got is lost, and seen to be', async () => {
    const { primary, standby, proxy, berth, client } = await open()
    await client.push(berth)
    await until('the standby has it', async () => {
      const [row] = await standby.ask<{ n: number }>('SELECT count(*)::int AS n FROM tags', 'berth_1')
      return row?.n === 1
    })

    await standby.shutDown('fast')
    await client.push(berth)
    await primary.kill()
    await standby.start()
    await standby.ask('SELECT pg_promote()')
    proxy.leadTo(standby.port)
    await client.push(berth)

    const losses = await client.findLosses(berth)
    expect(losses.filter((loss) => loss.startsWith('tag'))).toEqual(['tag load/0:tag-2: points to null'])
  }, 60_000)
}

describeNeeding(postgres, 'a standby that is promoted', failover)
