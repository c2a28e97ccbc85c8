// What servers of older versions leave in the database, or find in it.
import { describe, expect } from 'bun:test'
import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { listMissing, migrate } from '../../src/adapters/metadata-sql/migrate.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { type Engine, useEngines } from '../support/stores/both-engines.ts'
import { fillRegistry } from '../support/stores/full-registry.ts'
import { addInlineBlob, freshUploadId, hourMs, openShelf } from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'

const engines = useEngines('older-servers')

async function openAt(engine: Engine) {
  const open = await engine.place()
  const metadata = await SqlMetadataStore.open(open())
  await fillRegistry(metadata, 1)
  return { metadata, open }
}

describe('a server that knows nothing of suspensions', () => {
  engines.each('finds a suspended account disabled, and cannot enable it', async (engine) => {
    const { metadata, open } = await openAt(engine)
    await metadata.accounts.suspend('acme')
    const old = open()

    expect(await old.first("SELECT state FROM accounts WHERE name = 'acme'", [])).toEqual({ state: 'disabled' })
    expect(await errorOf(old.run("UPDATE accounts SET state = 'enabled' WHERE name = 'acme'", []))).toBeDefined()
    expect((await metadata.accounts.find('acme'))?.state).toBe('suspended')
  })
})

describe('a server that knows nothing of inline blobs', () => {
  const oldestCode = async (open: () => Database) =>
    (await open().first<{ oldest: number }>('SELECT oldest_code AS oldest FROM schema_versions WHERE version = 8', []))
      ?.oldest

  engines.each('starts until inline blobs are allowed', async (engine) => {
    const open = await engine.place()
    const metadata = await SqlMetadataStore.open(open())
    expect(await oldestCode(open)).toBeLessThan(8)

    for (let start = 0; start < 2; start += 1) await metadata.refuseServersWithoutInlineBlobs()

    expect(await oldestCode(open)).toBe(8)
  })

  engines.each('does not start on the target of a move if there are any', async (engine) => {
    const [open, target] = [await engine.place(), await engine.place()]
    const source = await SqlMetadataStore.open(open())
    await addInlineBlob(await openShelf(source), 'small')

    await (await SqlMetadataStore.open(target())).takeRowsOf(source, { id: 'move', keepsBlobStore: true })

    expect(await oldestCode(target)).toBe(8)
  })

  // Its statements, as it sends them.
  engines.each('cannot mark an inline blob as damaged', async (engine) => {
    const open = await engine.place()
    const metadata = await SqlMetadataStore.open(open())
    const shelf = await openShelf(metadata)
    const { id, digest, key } = await addInlineBlob(shelf, 'small')
    const mark = 'UPDATE blobs SET damaged_at = {now} WHERE id = $1 AND storage_key = $2 AND damaged_at IS NULL'

    expect(await errorOf(open().run(mark, [id, key]))).toBeDefined()
    expect(await metadata.blobs.find(shelf.scope, digest)).toMatchObject({ isInline: true, isDamaged: false })
  })
})

describe('a server of this version', () => {
  engines.each('does not trust a digest behind which an older server has appended bytes', async (engine) => {
    const open = await engine.place()
    const { metadata, repository, owner } = await openShelf(await SqlMetadataStore.open(open()))
    const { id } = await metadata.transaction((tables) =>
      tables.uploads.create(repository, owner.subject, freshUploadId(), freshKey(), 0),
    )
    const digest = digestOf('the first bytes')
    const kept = async () => (await metadata.uploads.claimTurn(owner, id, 0))?.receivedDigest
    const writer = await metadata.uploads.claimTurn(owner, id, hourMs)
    if (writer === undefined) throw new Error('the turn was not free')
    await metadata.uploads.releaseTurn(writer, { sizeBytes: 15, notes: undefined }, digest)
    expect(await kept()).toBe(digest)

    // As version 2 recorded what it had appended.
    await open().run('UPDATE uploads SET received_bytes = 19, notes = NULL, turn_until = 0, touched_at = {now}', [])

    expect(await kept()).toBeUndefined()
  })

  engines.each('opens a database whose first version an older `migrate-store` has renumbered', async (engine) => {
    const { open } = await openAt(engine)
    await open().run('UPDATE schema_versions SET version = 0 WHERE version = 1', [])

    for (const mayMigrate of [true, false]) {
      await (await SqlMetadataStore.open(open(), { mayMigrate })).probe()
    }

    expect([await listMissing(open()), await migrate(open())]).toEqual([[], []])
  })
})
