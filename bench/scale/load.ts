// Runs the statements of many requests at once, and measures the cost of a thousand of them for the database.
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import type { Digest } from '../../src/oci/digest.ts'
import type { Tag } from '../../src/oci/names.ts'
import type { UploadId } from '../../src/ports/uploads.ts'
import { readCpuSeconds } from '../process-cost.ts'
import { databaseOf } from './generate.ts'
import { freshKey, manifestOf, tagChange } from './probes-of-pushes.ts'
import { drawWorld, type Key, type World } from './sample.ts'
import type { ScaleServer } from './server.ts'

export interface LoadPlan {
  readonly seconds: number
  readonly processes: number
  /** Simultaneous requests of one process, which has the same number of connections. */
  readonly atOnce: number
  /** Pushes per hundred requests. */
  readonly pushes: number
  /** The target of pushes. */
  readonly target: 'anywhere' | 'one account' | 'one repository'
}

type Kind = 'manifest by tag' | 'manifest by digest' | 'blob' | 'push'

/** The result of a client process. Latencies are in milliseconds. */
export type Seen = Record<Kind | 'failed', number[]>

const nothingSeen = (): Seen => ({
  'manifest by tag': [],
  'manifest by digest': [],
  blob: [],
  push: [],
  failed: [],
})

/** Runs in a process of its own, and prints its result. */
export async function runClient(url: string, size: number, plan: LoadPlan): Promise<Seen> {
  const sql = new Bun.SQL({ url, max: 1 })
  const world = await drawWorld(sql, size)
  await sql.close()
  const limits = { queueMax: 1_000, statementTimeoutMs: 30_000, lockTimeoutMs: 10_000 }
  const store = await SqlMetadataStore.open(new PostgresDatabase({ url, connectionsMax: plan.atOnce, ...limits }))
  const seen = nothingSeen()
  const drive = async (until: number, note: boolean) => {
    while (performance.now() < until) {
      const kind = chooseKind(plan)
      const startedAt = performance.now()
      const outcome = await request(store, kind, choosePlace(world, kind, plan)).then(
        () => kind,
        () => 'failed' as const,
      )
      if (note) seen[outcome].push(performance.now() - startedAt)
    }
  }
  const all = (seconds: number, note: boolean) => {
    const until = performance.now() + seconds * 1000
    return Promise.all(Array.from({ length: plan.atOnce }, () => drive(until, note)))
  }
  // Connections are opened and statements are prepared before the measurement begins.
  await all(3, false)
  await all(plan.seconds, true)
  await store.close()
  return seen
}

function chooseKind({ pushes }: LoadPlan): Kind {
  const chance = Math.random() * 100
  if (chance < pushes) return 'push'
  const read = Math.random()
  if (read < 0.4) return 'manifest by tag'
  return read < 0.7 ? 'manifest by digest' : 'blob'
}

function choosePlace(world: World, kind: Kind, { target }: LoadPlan): Key {
  const drawn = world.draw()
  if (kind !== 'push' || target === 'anywhere') return drawn
  if (target === 'one repository') return world.big
  for (;;) {
    const key = world.draw()
    if (key.accountId === world.huge.id) return key
  }
}

/** The statements of one request whose credential is cached. */
async function request(store: SqlMetadataStore, kind: Kind, key: Key): Promise<void> {
  const scope = { accountId: key.accountId, repository: key.repository }
  if (kind === 'push') return push(store, key)
  await store.accounts.find(key.account)
  if (kind === 'blob') await store.blobs.find(scope, key.blob)
  else await store.manifests.find(scope, kind === 'manifest by tag' ? { tag: key.tag } : { digest: key.digest })
}

const freshDigest = () => `sha256:${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}` as Digest

/** Three requests: a session, its closing with all bytes, and a manifest of one new and one known blob, with a tag. */
async function push(store: SqlMetadataStore, key: Key): Promise<void> {
  const scope = { accountId: key.accountId, repository: key.repository }
  const [digest, storageKey] = [freshDigest(), freshKey()]
  await store.accounts.find(key.account)
  const repository = await store.repositories.ensure(scope)
  await store.uploads.countOpen(repository, 'user-1')
  const { id } = await store.uploads.create(repository, 'user-1', crypto.randomUUID() as UploadId, storageKey, 0)

  await store.accounts.find(key.account)
  const owner = { ...scope, subject: 'user-1' }
  await store.uploads.find(owner, id)
  const upload = await store.uploads.claimTurn(owner, id, 60_000)
  if (upload === undefined) throw new Error('the turn was taken by somebody else')
  await store.transaction(async (tables) => {
    await tables.uploads.commit(upload, digest)
    const blob = await tables.blobs.add(key.accountId, digest, { sizeBytes: 5_000_000, key: storageKey })
    await tables.blobs.link(repository, blob?.id ?? 0, digest)
  })

  await store.accounts.find(key.account)
  await store.transaction(async (tables) => {
    await tables.accounts.findLocked(key.accountId)
    await tables.repositories.ensure(scope)
    const blobs = await tables.blobs.lockByDigests(repository, [digest, key.blob])
    const manifest = manifestOf(freshDigest())
    const saved = await tables.manifests.save(repository, manifest)
    const entries = [digest, key.blob].map((each) => ({
      digest: each,
      blobId: blobs.get(each)?.id,
      childId: undefined,
    }))
    await tables.manifests.saveEntries(repository, saved.id, entries)
    await tables.manifests.fillEntries(repository, manifest.digest, saved.id)
    await tables.repositories.markAsImage(repository)
    await tables.tags.point(repository, `load-${Math.floor(Math.random() * 1000)}` as Tag, saved.id, tagChange)
  })
}

/** Starts the clients, and reports their results and the cost for PostgreSQL. */
export async function runLoad(
  server: ScaleServer,
  size: number,
  plan: LoadPlan,
  clientWords: readonly string[],
): Promise<string> {
  const url = server.urlOf(databaseOf(size))
  const words = [...clientWords, url, String(size), JSON.stringify(plan)]
  const clients = Array.from({ length: plan.processes }, () => Bun.spawn(words, { stdout: 'pipe', stderr: 'inherit' }))
  // The first seconds warm up and do not count.
  await Bun.sleep(6_000)
  const [paidBefore, clock] = [readCpuSeconds(server.pid), performance.now()]
  await Bun.sleep((plan.seconds - 4) * 1000)
  const [paid, seconds] = [readCpuSeconds(server.pid) - paidBefore, (performance.now() - clock) / 1000]
  const seen = await Promise.all(
    clients.map(async (client): Promise<Seen> => JSON.parse(await new Response(client.stdout).text())),
  )
  const merged = nothingSeen()
  for (const each of seen) {
    for (const [kind, taken] of Object.entries(each)) merged[kind as Kind] = [...(merged[kind as Kind] ?? []), ...taken]
  }
  const requests = Object.values(merged).reduce((sum, taken) => sum + taken.length, 0)
  const each = requests / plan.seconds
  return [
    `${JSON.stringify(plan)}`,
    ...Object.entries(merged).flatMap(([kind, taken]) =>
      taken.length === 0 ? [] : [`  ${kind}: ${taken.length}, ${percentiles(taken)}`],
    ),
    `  ${Math.round(each)} a second; PostgreSQL paid ${((paid / seconds / each) * 1000).toFixed(2)} CPU seconds for 1,000`,
  ].join('\n')
}

function percentiles(taken: readonly number[]): string {
  const sorted = taken.toSorted((one, other) => one - other)
  const at = (share: number) => sorted[Math.floor(sorted.length * share)]?.toFixed(1)
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`
}
