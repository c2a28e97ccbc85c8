// Every request to S3 fails in every way during every action of a client. s3-fault-matrix.ts has the expected outcomes.
// S3_FAULTS=all tries all combinations, also those that wait for many timeouts. TEST_S3 selects a real server, for which fewer
// combinations are tried, because Ceph keeps removed objects for hours.
import { afterAll, beforeAll, describe, expect } from 'bun:test'
import type { StorageKey } from '../../src/ports/blob-store.ts'
import { generatedBytes } from '../support/basics/generated-bytes.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { ask, pushBlob } from '../support/clients/registry-client.ts'
import type { S3Server } from '../support/s3/s3-server.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { sharedS3, testS3Need } from '../support/s3/test-s3.ts'
import { auditPromises } from '../support/s3-faults/s3-audit.ts'
import { startS3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'
import { openS3World, tinyPlan } from '../support/s3-faults/s3-world.ts'
import { type ClientAction, clientActions } from './s3-client-actions.ts'
import { type Cell, cellsOf, type Lane, type Tried, tryCell } from './s3-fault-matrix.ts'

const kibi = 1024
const isStub = (process.env['TEST_S3'] ?? 'stub') === 'stub'
const need = testS3Need()
/** A real server takes no part below 5 MiB. */
const actions = clientActions(isStub ? { part: 64 * kibi, small: 10_000 } : { part: 5 * kibi ** 2, small: 256 * kibi })
const chosen = cellsOf(actions).filter(process.env['S3_FAULTS'] === 'all' ? () => true : isQuick)
const lanesMax = isStub ? 10 : 2

const temporaryFolder = useTemporaryFolders('s3-faults')
const lanes: Lane[] = []
let server: S3Server
let seed = 0

beforeAll(async () => {
  // A stub of its own: it takes smaller parts than the shared one.
  if (need.isMet) server = isStub ? startS3Stub({ partBytesMin: tinyPlan.minBytes }) : await sharedS3()
  for (let lane = 0; need.isMet && lane < lanesMax; lane += 1) lanes.push(await openLane())
}, 120_000)

afterAll(async () => {
  for (const { world, proxy } of lanes) {
    await world.stop()
    await proxy.stop()
  }
  if (isStub) await server.stop()
})

async function openLane(): Promise<Lane> {
  const proxy = await startS3FaultProxy(server.url)
  const store = { attemptTimeoutMs: isStub ? 1_000 : 15_000, triesMax: 3 }
  const world = await openS3World({ server, url: proxy.url, dataDir: temporaryFolder(), store })
  return { world, proxy, server }
}

/** With the stub, each fault of each request of an action comes once or always, in turn: they follow each other in the list. */
function isQuick({ fault, occurrence, operation }: Cell, index: number): boolean {
  if (!fault.startsWith('timeout')) {
    return isStub ? (index >> 1) % 2 === Number(occurrence === 'always') : occurrence === 'once' || fault === '500'
  }
  // A body gets its time by its size: 20 seconds for a piece of 5 MiB.
  return occurrence === 'once' && (isStub || operation !== 'UploadPart')
}

/** Several at once, each in a world of its own: most of their time is waiting. */
async function tryAll(cells: readonly Cell[]): Promise<Tried[]> {
  const tried: Tried[] = []
  const left = [...cells]
  const work = async (lane: Lane): Promise<void> => {
    for (let cell = left.shift(); cell !== undefined; cell = left.shift()) {
      seed += 1
      tried.push(await tryCell(lane, cell, seed).catch((error: unknown) => failed(lane, cell, error)))
    }
  }
  await Promise.all(lanes.map(work))
  return tried
}

/** The other cells are tried all the same. */
function failed({ proxy }: Lane, cell: Cell, error: unknown): Tried {
  proxy.clear()
  return { cell, faults: [String(error)] }
}

function faultsOf(tried: readonly Tried[]): string[] {
  return tried.flatMap(({ cell, faults }) =>
    faults.map((fault) => `${cell.operation} ${cell.fault} ${cell.occurrence}: ${fault}`),
  )
}

function firstLane(): Lane {
  const [lane] = lanes
  if (lane === undefined) throw new Error('there is no lane')
  return lane
}

describe('S3 that fails', () => {
  for (const action of actions) {
    const cells = chosen.filter((cell) => cell.action === action)
    testNeeding(
      need,
      `${action.name}: done or 503 as the rule says, good at the next try, and nothing lost or left, in ${cells.length} cells`,
      async () => {
        const tried = await tryAll(cells)

        expect(faultsOf(tried)).toEqual([])
        expect(tried).toHaveLength(cells.length)
      },
      isStub && process.env['S3_FAULTS'] !== 'all' ? 60_000 : 1_800_000,
    )
  }
})

describe('what tries the cells', () => {
  testNeeding(
    need,
    'reports a push that is acknowledged without its bytes, and a fault that no request met',
    async () => {
      const liar: ClientAction = {
        name: 'a lie',
        operations: ['PutObject'],
        prepare: async () => ({
          run: async () => 'done',
          retry: async () => 'done',
          digest: `sha256:${'0'.repeat(64)}`,
          repository: 'no/such',
        }),
      }
      const cell: Cell = { action: liar, operation: 'PutObject', fault: '500', occurrence: 'always' }
      const { faults } = await tryCell(firstLane(), cell, 0)

      expect(faults).toEqual([
        'ends as done, not unavailable',
        'the fault was never met',
        'is served afterwards: status 404',
      ])
    },
  )

  testNeeding(need, 'reports lost bytes and orphaned objects', async () => {
    const { world } = firstLane()
    const digest = await pushBlob(world, 'audit/app', generatedBytes(1_000, 1))
    const writer = await world.direct.openWriter(Bun.randomUUIDv7() as StorageKey, { sizeBytes: 0, notes: undefined })
    await writer.write(generatedBytes(1_000, 2))
    const stray = await writer.complete()
    await writer.close()
    expect(await world.audit()).toEqual([`no row names ${stray.key}`])

    await world.direct.remove(stray.key, undefined)
    for await (const page of world.direct.listOlderThan(0)) {
      for (const { storageKey } of page) await world.direct.remove(storageKey, undefined)
    }
    expect(await auditPromises(world.dataDir, world.direct)).toEqual([
      `the object of ${digest} is missing, or of another size`,
    ])
    await ask(world, 'DELETE', `/v2/audit/app/blobs/${digest}`)
    await world.collect(0)
    expect(await world.audit()).toEqual([])
  })
})
