// The collector's work on rows, on both engines: what one transaction takes at most, and what may come between two.
import { expect } from 'bun:test'
import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import type { StorageKey } from '../../src/ports/blob-store.ts'
import { removeEmptyRepositories, trashUnusedBlobs } from '../../src/registry/garbage-selection.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { afterCommit, crash, Gate, SimulatedCrash } from '../support/clocks/gates.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import { type Engine, useEngines } from '../support/stores/both-engines.ts'
import { addBlob, addManifest, hourMs, openShelf, type Shelf } from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'

const engines = useEngines('garbage-rows')
const ages = { leaseMs: hourMs }
const never = () => false

interface Rows {
  readonly metadata: SqlMetadataStore
  readonly shelf: Shelf
  /** All leases and queued blobs become two hours older. */
  grow(): Promise<void>
  count(from: string): Promise<number>
  run(sql: string): Promise<unknown>
}

async function openRows(engine: Engine): Promise<Rows> {
  const open = await engine.place()
  const metadata = await SqlMetadataStore.open(open())
  const database: Database = open()
  const run = (sql: string) => database.run(sql, [])
  return {
    metadata,
    shelf: await openShelf(metadata),
    async grow() {
      await run(`UPDATE blob_links SET leased_at = leased_at - ${2 * hourMs}`)
      await run(`UPDATE blob_queue SET queued_at = queued_at - ${2 * hourMs}`)
    },
    async count(from) {
      // What another connection has committed is seen from the next turn of the event loop on.
      await new Promise(setImmediate)
      return (await database.first<{ count: number }>(`SELECT count(*) AS count FROM ${from}`, []))?.count ?? -1
    },
    run,
  }
}

/** As a table with the numbers from 1 on: `each.n`. */
const numbers = (count: number) =>
  `(WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ${count}) SELECT n FROM counted)`

/** A base layer that 450 repositories link besides the shelf's own; no lease is active. */
async function openLiked(engine: Engine) {
  const rows = await openRows(engine)
  const { metadata, shelf, run } = rows
  const blob = await addBlob(shelf, 'base layer')
  await run(
    `INSERT INTO repositories (account_id, name, created_at)
     SELECT ${shelf.accountId}, 'liker-' || each.n, 1 FROM ${numbers(450)} AS each`,
  )
  await run(
    `INSERT INTO blob_links (account_id, repository_id, blob_id, leased_at)
     SELECT r.account_id, r.id, ${blob.id}, 1 FROM repositories r WHERE r.name LIKE 'liker-%'`,
  )
  await rows.grow()
  const liker = (number: number) => openShelf(metadata, 'acme', `liker-${number}`)
  /** What a push does with the blob: looks it up under lock and, if it is there, names it. */
  const push = async (to: Shelf): Promise<'pushed' | 'unknown'> => {
    const found = await metadata.transaction((tables) => tables.blobs.lockByDigests(to.repository, [blob.digest]))
    if (found.get(blob.digest) === undefined) return 'unknown'
    await addManifest(to, 'image', { blobs: [blob] })
    return 'pushed'
  }
  const links = () => rows.count('blob_links')
  return { ...rows, blob, liker, push, links }
}

engines.each(
  'a sweep during a move to here leaves the copies alone, and takes objects that are not recorded',
  async (engine) => {
    const { metadata } = await openRows(engine)
    const [openedFor, other] = [freshKey(), freshKey()]
    const [copy, stray] = [`${openedFor}-0123456789abcdef`, `${other}-0123456789abcdef`] as StorageKey[]
    if (copy === undefined || stray === undefined) throw new Error('no keys')
    const copied = { sourceKey: freshKey(), storageKey: copy, digest: digestOf('layer'), sizeBytes: 5 }
    await metadata.copiedObjects().add(copied, [])

    const trashed = await metadata.transaction(({ garbage }) =>
      garbage.trashOrphans([
        { storageKey: copy, openedFor, notes: undefined },
        { storageKey: stray, openedFor: other, notes: undefined },
      ]),
    )

    expect(trashed).toBe(1)
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toEqual([{ storageKey: stray, notes: undefined }])
  },
)

engines.each('a blob that many repositories link loses some hundreds of links a transaction', async (engine) => {
  const { metadata, shelf, blob, links, count, liker } = await openLiked(engine)
  for (const used of [shelf, await liker(7), await liker(333)]) await addManifest(used, 'image', { blobs: [blob] })
  const seen = [await links()]
  const noting = afterCommit(metadata, async () => void seen.push(await links()))

  expect(await trashUnusedBlobs({ metadata: noting }, ages, never)).toEqual({ blobs: 0, bytes: 0 })

  const gone = seen.slice(1).map((left, at) => (seen[at] ?? 0) - left)
  expect([seen[0], seen.at(-1)]).toEqual([451, 3])
  expect(Math.max(...gone)).toBeLessThanOrEqual(200)
  expect(await count('blob_queue')).toBe(0)
})

engines.each('a push between two portions keeps its link, or is told that it is gone', async (engine) => {
  const { metadata, liker, push, links, count } = await openLiked(engine)
  const [early, late] = [await liker(3), await liker(440)]
  const outcomes: string[] = []
  const pushing = afterCommit(metadata, async () => {
    if (outcomes.length === 0 && (await links()) < 300) outcomes.push(await push(early), await push(late))
  })

  await trashUnusedBlobs({ metadata: pushing }, ages, never)

  expect(outcomes).toEqual(['unknown', 'pushed'])
  expect(await links()).toBe(1)
  expect(await count('manifest_entries e JOIN blobs b ON b.id = e.blob_id')).toBe(1)
})

engines.each('an unused blob goes to the trash once its many links are gone', async (engine) => {
  const { metadata, links, count } = await openLiked(engine)

  expect(await trashUnusedBlobs({ metadata }, ages, never)).toEqual({ blobs: 1, bytes: 'base layer'.length })

  expect([await links(), await count('blobs'), await count('trash'), await count('blob_queue')]).toEqual([0, 0, 1, 0])
})

engines.each('a blob that is mounted while its links go is kept for the lease', async (engine) => {
  const { metadata, shelf, blob, links, count } = await openLiked(engine)
  const fresh = await openShelf(metadata, 'acme', 'fresh')
  let isMounted = false
  const mounting = afterCommit(metadata, async () => {
    if (isMounted || (await links()) > 300) return
    isMounted = true
    await metadata.transaction(({ blobs }) => blobs.link(fresh.repository, blob.id, blob.digest))
  })

  expect(await trashUnusedBlobs({ metadata: mounting }, ages, never)).toEqual({ blobs: 0, bytes: 0 })

  expect(isMounted).toBe(true)
  expect([await links(), await count('blobs'), await count('blob_queue')]).toEqual([1, 1, 1])
  expect(await metadata.blobs.find(fresh.scope, blob.digest)).toBeDefined()
  expect(await metadata.blobs.find(shelf.scope, blob.digest)).toBeUndefined()
})

engines.each('a collector that crashes between two portions leaves the blob in the queue', async (engine) => {
  const { metadata, links, count, shelf, blob } = await openLiked(engine)
  await addManifest(shelf, 'image', { blobs: [blob] })
  const dying = afterCommit(metadata, async () => {
    if ((await links()) < 300) await crash()
  })

  await expect(trashUnusedBlobs({ metadata: dying }, ages, never)).rejects.toThrow()
  expect([(await links()) > 1, await count('blob_queue')]).toEqual([true, 1])
  await trashUnusedBlobs({ metadata }, ages, never)

  expect([await links(), await count('blob_queue')]).toEqual([1, 0])
})

engines.each('what disabled accounts have queued is met once a lease, not once a blob', async (engine) => {
  const { metadata, shelf, grow, count, run } = await openRows(engine)
  const off = await openShelf(metadata, 'off')
  await run(
    `INSERT INTO blobs (account_id, digest, size_bytes, storage_key, created_at)
     SELECT ${off.accountId}, 'digest-' || each.n, 1, 'key-' || (1000 + each.n), 1 FROM ${numbers(250)} AS each`,
  )
  await run(
    'INSERT INTO blob_queue (account_id, blob_id, queued_at) SELECT account_id, id, 1000000000000 + id FROM blobs',
  )
  for (const text of ['one', 'two', 'three']) await addBlob(shelf, text)
  await grow()
  await metadata.accounts.setState('off', 'disabled')
  let transactions = 0
  const counting = afterCommit(metadata, async () => {
    transactions += 1
  })
  const collect = (leaseMs: number) => {
    transactions = 0
    return trashUnusedBlobs({ metadata: counting }, { leaseMs }, never)
  }

  // One for each blob, and one that finds nothing.
  expect(await collect(hourMs)).toMatchObject({ blobs: 3 })
  expect(transactions).toBe(254)
  expect(await collect(hourMs)).toMatchObject({ blobs: 0 })
  expect(transactions).toBe(1)
  // Without a lease all is due again at once, and a collection ends all the same.
  expect(await collect(0)).toMatchObject({ blobs: 0 })
  expect(await count('blob_queue')).toBe(250)

  await metadata.accounts.setState('off', 'enabled')
  await grow()
  expect(await collect(hourMs)).toMatchObject({ blobs: 250 })
})

engines.each('what was queued in one moment, as by a move, is met all the same', async (engine) => {
  const { metadata, grow, count, run, liker, blob } = await openLiked(engine)
  const off = await openShelf(metadata, 'off')
  for (const text of ['one', 'two', 'three']) {
    await addBlob(off, text)
    await addBlob(await liker(1), text)
  }
  await grow()
  await run('UPDATE blob_queue SET queued_at = 1')
  await metadata.accounts.setState('off', 'disabled')
  const pushing = await liker(450)
  let looks = 0
  const held = afterCommit(metadata, async () => {
    // As its links have been looked at, the base layer is used: by a lease that is not over.
    looks += 1
    if (looks < 40) await metadata.transaction(({ blobs }) => blobs.link(pushing.repository, blob.id, blob.digest))
  })

  expect(await trashUnusedBlobs({ metadata: held }, ages, never)).toMatchObject({ blobs: 3 })

  expect(await count('blob_queue WHERE queued_at = 1')).toBe(0)
  expect(await count('blob_queue')).toBe(4)
})

/** Only on PostgreSQL can a push hold a link while the others go. */
testNeeding(postgres, 'a link that a push has held, and that it left unused, goes with the next look', async () => {
  const { metadata, shelf, blob, liker, links, count, grow } = await openLiked(engines.postgres)
  await addManifest(shelf, 'image', { blobs: [blob] })
  const failing = await liker(7)
  const held = new Gate()
  let pushing: Promise<unknown> = Promise.resolve()
  let transactions = 0
  const disturbed = afterCommit(metadata, async () => {
    transactions += 1
    if (transactions === 1) {
      pushing = metadata.transaction(async (tables) => {
        await tables.blobs.lockByDigests(failing.repository, [blob.digest])
        await held.pass()
        await crash()
      })
      await held.reached
    } else if (transactions === 2) {
      held.open()
      await expect(pushing).rejects.toThrow(SimulatedCrash)
    }
  })

  await trashUnusedBlobs({ metadata: disturbed }, ages, never)
  expect([await links(), await count('blob_queue')]).toEqual([2, 1])

  await grow()
  await trashUnusedBlobs({ metadata }, ages, never)
  expect([await links(), await count('blob_queue')]).toEqual([1, 0])
})

testNeeding(postgres, 'so does one that another transaction holds, of a blob that few repositories link', async () => {
  const { metadata, shelf, grow, count } = await openRows(engines.postgres)
  const other = await openShelf(metadata, 'acme', 'other')
  const blob = await addBlob(shelf, 'layer')
  await addManifest(shelf, 'image', { blobs: [blob] })
  await metadata.transaction(({ blobs }) => blobs.link(other.repository, blob.id, blob.digest))
  await grow()

  await metadata.transaction(async ({ blobs }) => {
    await blobs.isUsed(other.repository, blob.id)
    await trashUnusedBlobs({ metadata }, ages, never)
  })
  expect([await count('blob_links'), await count('blob_queue')]).toEqual([2, 1])

  await grow()
  await trashUnusedBlobs({ metadata }, ages, never)
  expect([await count('blob_links'), await count('blob_queue')]).toEqual([1, 0])
})

engines.each('many repositories without manifests are looked at over several collections', async (engine) => {
  const { metadata, shelf, count, run } = await openRows(engine)
  await run(
    `INSERT INTO repositories (account_id, name, is_image, created_at)
     SELECT ${shelf.accountId}, 'future-' || each.n, 0, 9000000000000000 FROM ${numbers(12_000)} AS each`,
  )
  const last = await openShelf(metadata, 'acme', 'last')
  const collect = (shouldStop = never) => removeEmptyRepositories({ metadata }, { leaseMs: 0 }, shouldStop)
  expect(await collect(() => true)).toBe(0)
  expect(await collect()).toBe(1)
  expect(await metadata.repositories.find(shelf.scope)).toBeUndefined()
  expect(await metadata.repositories.find(last.scope)).toBeDefined()
  expect(await metadata.marks.find('empty-repositories')).toBeDefined()
  expect(await collect()).toBe(1)
  expect(await metadata.repositories.find(last.scope)).toBeUndefined()
  expect(await metadata.marks.find('empty-repositories')).toBeUndefined()
  expect([await count('repositories'), await collect()]).toEqual([12_000, 0])
  await run('UPDATE repositories SET is_image = 1')
  expect([await collect(), await collect()]).toEqual([0, 0])
  expect(await metadata.marks.find('empty-repositories')).toBeUndefined()
})
