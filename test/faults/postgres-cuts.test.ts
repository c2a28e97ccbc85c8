// The connection to PostgreSQL is cut at each statement of a whole push: before the server hears of it, and after it was done
// and before the client is told. Each cut is answered with 503 or not noticed at all; the client's retry succeeds.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { describeNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { PushingClients } from '../support/clients/pushing-clients.ts'
import { ask } from '../support/clients/registry-client.ts'
import { type Moment, PostgresProxy } from '../support/postgres/postgres-proxy.ts'
import { type PostgresServer, postgres, startPostgres } from '../support/postgres/postgres-server.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { auditPostgres } from '../support/stores/store-audit.ts'

const temporaryFolder = useTemporaryFolders('postgres-cuts')

/** One connection for look-ups and one for all else, so that the statements of a push come in one order. */
const settings = {
  BERTH_SERVER__WORKERS: '1',
  BERTH_METADATA__CONNECTIONS: '2',
  BERTH_METADATA__STATEMENT_TIMEOUT: '2s',
  BERTH_METADATA__LOCK_TIMEOUT: '1s',
  BERTH_GARBAGE__EVERY: '0s',
}

let server: PostgresServer
let url: string
let proxy: PostgresProxy
let berth: BerthProcess
let client: PushingClients
const dataDir = temporaryFolder()
const cutStatements: string[] = []

/** A push whose n-th statement is cut. Gives false when it has not so many. */
async function pushCutAt(at: number, moment: Moment): Promise<boolean> {
  // All connections are there, so that a push has the same statements each time.
  await client.push(berth)
  const cutsBefore = proxy.cuts
  proxy.cutAt(at, moment)
  await client.push(berth)
  const isCut = proxy.cuts > cutsBefore
  if (isCut) cutStatements.push(`${moment} ${proxy.statements[at - 1]}`)
  proxy.cutAt(undefined)
  return isCut
}

function cuts(): void {
  beforeAll(async () => {
    server = await startPostgres()
    url = await server.newDatabase()
    proxy = await PostgresProxy.start(server.port)
    berth = await startBerth({ dataDir, settings: { ...settings, BERTH_METADATA__URL: proxy.through(url) } })
    client = new PushingClients({ isUniform: true, layerBytesMax: 20_000 })
  })

  afterAll(async () => {
    await berth.stop()
    await proxy.stop()
    await server.stop()
  })

  test('control: a proxy that is not told to cut does not', async () => {
    proxy.cutAt(undefined)
    await client.push(berth)

    expect(proxy.cuts).toBe(0)
    expect(proxy.statements.filter((statement) => statement === 'COMMIT').length).toBeGreaterThanOrEqual(4)
    expect(client.figures.retries.size).toBe(0)
  })

  for (const moment of ['before', 'after'] as const) {
    test(`${moment} each statement in turn: no other answer than success and 503, and every retry succeeds`, async () => {
      let at = 1
      while (await pushCutAt(at, moment)) at += 1

      // All of them: the push that ended this was one without a cut.
      expect(at - 1).toBe(cutStatements.filter((statement) => statement.startsWith(moment)).length)
      expect(at - 1).toBeGreaterThan(30)
      const { failures, restartedUploads, retries } = client.figures
      expect([failures, restartedUploads]).toEqual([[], []])
      expect([...retries.keys()].filter((reason) => reason.startsWith('5') && reason !== '503')).toEqual([])
    }, 60_000)
  }

  test('nothing that was acknowledged is lost, and the stores are sound', async () => {
    const commits = cutStatements.filter((statement) => statement.endsWith('COMMIT')).length
    console.log(`postgres cuts: ${proxy.cuts} (${commits} at COMMIT), ${client.figures.images} pushes acknowledged`)
    expect(await client.findLosses(berth)).toEqual([])
    expect(await auditPostgres(url, dataDir)).toEqual([])
    expect(berth.output()).not.toContain('"level":"error"')
  })

  test('control: a push whose COMMIT is cut and that is not repeated is missing', async () => {
    for (let attempt = 0; ; attempt += 1) {
      const once = new PushingClients({ isUniform: true, layerBytesMax: 20_000, triesMax: 1, seed: 2 + attempt })
      const clientNumber = 1_000 + 2 * attempt
      proxy.cutAt(undefined)
      await client.push(berth)
      const last = proxy.statements.lastIndexOf('COMMIT') + 1
      proxy.cutAt(last, 'before')
      const result = [await once.push(berth, clientNumber), once.size]
      proxy.cutAt(undefined)
      // If a background job ran during one of the two pushes, another statement was cut.
      const isExpected = Bun.deepEquals(result, [false, { blobs: 2, manifests: 0, tags: 1 }])
      if (!isExpected && attempt < 9) continue
      expect(result).toEqual([false, { blobs: 2, manifests: 0, tags: 1 }])
      expect((await ask(berth, 'GET', `/v2/load/0/manifests/tag-${clientNumber}`)).status).toBe(404)
      return
    }
  })

  test('control: the audit finds a wrong mark, a file that no row names, and a missing file', async () => {
    await server.ask("UPDATE repositories SET is_image = 1 - is_image WHERE name = 'load/0'", 'berth_1')
    const [blob] = await server.ask<{ storage_key: string }>(
      'SELECT storage_key FROM blobs WHERE content IS NULL LIMIT 1',
      'berth_1',
    )
    const key = blob?.storage_key ?? ''
    const folder = join(dataDir, 'blobs', key.slice(-2))
    renameSync(join(folder, key), join(folder, 'stray'))

    const faults = await auditPostgres(url, dataDir)

    expect(faults.map((fault) => fault.replace(/sha256:[0-9a-f]+|[0-9a-f-]{36}|\d+/g, '#')).toSorted()).toEqual([
      '# counts # images and has #',
      'load/# is marked as an image: #, and has manifests: #',
      'the file of # is missing',
      'the file stray is named by no row',
    ])
  })
}

describeNeeding(postgres, 'PostgreSQL, cut at each statement of a push', cuts)
