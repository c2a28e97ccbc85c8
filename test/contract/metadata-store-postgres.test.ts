import { afterEach, describe, expect, test } from 'bun:test'
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqlUploads } from '../../src/adapters/metadata-sql/tables/uploads.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import {
  addBlob,
  addManifest,
  candidateOf,
  freshUploadId,
  hourMs,
  openShelf,
  saveManifest,
} from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import { limits, newMigratedDatabase } from '../support/stores/test-stores.ts'
import { metadataStoreContract } from './metadata-store.ts'
import { signingKeysContract } from './signing-keys.ts'

const opened: SqlMetadataStore[] = []

afterEach(async () => {
  for (const metadata of opened.splice(0)) await metadata.close()
})

async function openPostgres(): Promise<SqlMetadataStore> {
  const url = await newMigratedDatabase()
  const metadata = await SqlMetadataStore.open(new PostgresDatabase({ ...limits, url }))
  opened.push(metadata)
  return metadata
}

/** What replicas on PostgreSQL need beyond the contract: SQLite has one writer, whose commit is never in doubt. */
function doubtContract(): void {
  test('whether an upload is open is told once a transaction that finishes it is over', async () => {
    const { metadata, repository, owner } = await openShelf(await openPostgres())
    const { id } = await metadata.transaction(({ uploads }) =>
      uploads.create(repository, owner.subject, freshUploadId(), freshKey(), 0),
    )
    const upload = await metadata.uploads.claimTurn(owner, id, hourMs)
    if (upload === undefined) throw new Error('the turn was not free')
    const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const order: string[] = []

    const finishing = metadata.transaction(async ({ uploads }) => {
      await uploads.commit(upload, digestOf('whole'))
      begun.resolve()
      await held.promise
      order.push('finished')
    })
    await begun.promise
    const asked = metadata.uploads.holdsTurn(upload).then((isOpen) => order.push(`open: ${isOpen}`))
    await Bun.sleep(50)
    held.resolve()
    await Promise.all([finishing, asked])

    expect(order).toEqual(['finished', 'open: false'])
  })
}

/** SQLite's plans follow from the statements alone (sqlite-plans.ts); those of PostgreSQL are measured in bench/scale as well. */
function costContract(): void {
  test('what a session costs does not grow with the finished sessions of its repository', async () => {
    const database = new PostgresDatabase({ ...limits, url: await newMigratedDatabase() })
    const metadata = await SqlMetadataStore.open(database)
    opened.push(metadata)
    const { repository, owner } = await openShelf(metadata)
    // Most repositories have one session, so that the planner takes the repository for as good a key as the session's own.
    await database.run(
      "INSERT INTO repositories (account_id, name, created_at) SELECT $1, 'app' || n, 0 FROM generate_series(1, 2000) AS n",
      [repository.accountId],
    )
    await database.run(
      `INSERT INTO uploads (account_id, repository_id, subject, id, storage_key, created_at, touched_at)
       SELECT account_id, id, $1, id, id, 0, 0 FROM repositories`,
      [owner.subject],
    )
    await database.run('ANALYZE uploads, repositories', [])
    await database.run(
      `INSERT INTO uploads (account_id, repository_id, subject, id, done_digest, created_at, touched_at)
       SELECT $1, $2, $3, 'finished ' || n, 'sha256:' || n, 0, 0 FROM generate_series(1, 1000) AS n`,
      [repository.accountId, repository.id, owner.subject],
    )

    const rowsRead = await database.transaction(async (queries) => {
      await queries.run('SET LOCAL plan_cache_mode = force_generic_plan', [])
      const uploads = new SqlUploads(queries)
      const { id } = await uploads.create(repository, owner.subject, freshUploadId(), freshKey(), 0)
      expect(await uploads.countOpen(repository, owner.subject)).toEqual({ ofRepository: 2, ofSubject: 2 })
      expect(await uploads.find(owner, id)).toBeDefined()
      expect(await uploads.claimTurn(owner, id, 0)).toBeDefined()
      expect(await uploads.remove(owner, id)).toBe(true)
      const read = await queries.first<{ rows: number }>(
        "SELECT seq_tup_read + idx_tup_fetch AS rows FROM pg_stat_xact_user_tables WHERE relname = 'uploads'",
        [],
      )
      return read?.rows
    })

    expect(rowsRead).toBeLessThan(20)
  })
}

/** On SQLite the collector waits for the push to end. */
function nobodyWaitsContract(): void {
  test('32 pushes into one repository have all done their work before the first of them ends', async () => {
    const url = await newMigratedDatabase()
    const database = new PostgresDatabase({ ...limits, url, connectionsMax: 40 })
    const metadata = await SqlMetadataStore.open(database)
    opened.push(metadata)
    const shelf = await openShelf(metadata)
    await addManifest(shelf, 'the first image', { tag: 'latest' })
    await metadata.transaction(({ repositories }) => repositories.markAsImage(shelf.repository))
    let working = 32
    const all = Promise.withResolvers<void>()

    const push = (at: number) =>
      metadata.transaction(async (tables) => {
        await tables.accounts.findLocked(shelf.accountId)
        await tables.repositories.ensure(shelf.scope)
        const digest = digestOf(`layer ${at}`)
        const content = { sizeBytes: 5, key: freshKey() }
        const blob = await tables.blobs.add(shelf.accountId, digest, content, shelf.repository.id)
        await tables.blobs.link(shelf.repository, blob?.id ?? 0, digest)
        await saveManifest(tables, shelf, `image ${at}`, { tag: `v${at}` })
        await tables.repositories.markAsImage(shelf.repository)
        working -= 1
        if (working === 0) all.resolve()
        await all.promise
      })
    await Promise.all(Array.from({ length: 32 }, (_, at) => push(at)))

    expect(await metadata.usage.findOfRepository(shelf.repository)).toMatchObject({ manifests: 33, tags: 33 })
  })

  test('a push of a blob goes on while links of others are dropped', async () => {
    const gone = await openShelf(await openPostgres())
    const { metadata } = gone
    const blob = await addBlob(gone, 'layer')
    const pushing = await openShelf(metadata, 'acme', 'pushing')
    await metadata.transaction(({ blobs }) => blobs.link(pushing.repository, blob.id, blob.digest))
    const candidate = candidateOf(gone, blob)

    await metadata.transaction(async ({ garbage }) => {
      expect(await garbage.removeUnusedLinks(candidate, 0, 0, 1)).toEqual({
        next: gone.repository.id,
        hasSkipped: false,
      })
      await addManifest(pushing, 'image', { blobs: [blob] })
    })

    expect(await metadata.blobs.find(gone.scope, blob.digest)).toBeUndefined()
    expect(await metadata.blobs.find(pushing.scope, blob.digest)).toBeDefined()
  })
}

// Where there is none, one loud skip stands for all of it, and in CI a failure.
if (postgres.isMet) {
  metadataStoreContract('PostgreSQL', openPostgres)
  describe('metadata store, PostgreSQL', doubtContract)
  describe('metadata store, PostgreSQL: links that go', nobodyWaitsContract)
  describe('metadata store, PostgreSQL: costs', costContract)
  signingKeysContract('PostgreSQL', async () => {
    const metadata = await openPostgres()
    return { keys: metadata.signingKeys(), reopen: () => metadata.signingKeys() }
  })
} else testNeeding(postgres, 'metadata store, PostgreSQL', async () => {})
