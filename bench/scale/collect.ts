// Runs one collector, and measures how many blobs it checks per second. Its removals are permanent.
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { collectGarbage } from '../../src/registry/garbage.ts'
import { readCpuSeconds } from '../process-cost.ts'
import { databaseOf } from './generate.ts'
import type { ScaleServer } from './server.ts'

const day = 86_400_000

/** Only queued blobs are due: the lease is shorter than the one with which they were queued. */
const ages = {
  leaseMs: day / 2,
  quarantineMs: 400 * day,
  uploadIdleMs: 400 * day,
  uploadMaxMs: 400 * day,
  uploadDoneMs: 400 * day,
  untaggedMs: 0,
  undeleteMs: 0,
  tagHistoryMs: 400 * day,
  holdMs: day,
}

export async function runCollector(server: ScaleServer, size: number, seconds: number): Promise<string> {
  const url = server.urlOf(databaseOf(size))
  const limits = { queueMax: 10, statementTimeoutMs: 60_000, lockTimeoutMs: 10_000 }
  const metadata = await SqlMetadataStore.open(new PostgresDatabase({ url, connectionsMax: 2, ...limits }))
  const blobs = { remove: async () => undefined, listOlderThan: nothing }
  let looks = 0
  const counted = {
    garbage: metadata.garbage,
    marks: metadata.marks,
    usage: metadata.usage,
    transaction: <T>(work: Parameters<typeof metadata.transaction<T>>[0]) => {
      looks += 1
      return metadata.transaction(work)
    },
  }
  const [startedAt, paidBefore] = [performance.now(), readCpuSeconds(server.pid)]
  const isOver = () => performance.now() - startedAt > seconds * 1000
  const collected = await collectGarbage({ metadata: counted, blobs }, ages, isOver)
  const [taken, paid] = [(performance.now() - startedAt) / 1000, readCpuSeconds(server.pid) - paidBefore]
  await metadata.close()
  const each = `${Math.round(looks / taken)} transactions a second, ${((paid / looks) * 1000).toFixed(1)} CPU ms each`
  return `${JSON.stringify(collected)} in ${taken.toFixed(0)} s: ${each}`
}

async function* nothing(): AsyncGenerator<never[]> {}
