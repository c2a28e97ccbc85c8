// A server of an older version knows nothing of moves: it must not start while one goes on.
import { describe, expect } from 'bun:test'
import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { listAll, listMissing, migrate } from '../../src/adapters/metadata-sql/migrate.ts'
import { initial } from '../../src/adapters/metadata-sql/migrations/0001-initial.ts'
import { keysWithLimits } from '../../src/adapters/metadata-sql/migrations/0002-keys-with-limits.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { freeze, markAborted, thaw } from '../../src/app/store-move/move-state.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { type Engine, useEngines } from '../support/stores/both-engines.ts'
import { dumpRows, fillRegistry } from '../support/stores/full-registry.ts'
import { freshUploadId, hourMs, openShelf } from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'

const engines = useEngines('older-servers')
const newest = listAll().length
const goal = { targetId: 'another store', place: 'elsewhere', keepsBlobStore: true }
const clock = { freshId: () => 'a move' }

async function openAt(engine: Engine) {
  const open = await engine.place()
  const metadata = await SqlMetadataStore.open(open())
  await fillRegistry(metadata, 1)
  return { metadata, open }
}

/** What the version before did with a schema: it knew two migrations, and no word of who is too old. */
async function startAsVersionBefore(database: Database): Promise<void> {
  for (const [version, sql] of [initial, keysWithLimits].entries()) {
    await database.transaction(async (queries) => {
      const known = await queries.first('SELECT version FROM schema_versions WHERE version = $1', [version + 1])
      if (known !== undefined) return
      for (const statement of sql.split(';')) if (statement.trim() !== '') await queries.run(statement, [])
      await queries.run('INSERT INTO schema_versions (version, applied_at) VALUES ($1, {now})', [version + 1])
    })
  }
}

function versionsOf(database: Database) {
  return database.all('SELECT * FROM schema_versions ORDER BY version', [])
}

async function oldestAllowed(database: Database): Promise<number | undefined> {
  return (await database.first<{ oldest: number }>('SELECT max(oldest_code) AS oldest FROM schema_versions', []))
    ?.oldest
}

describe('a server of the version before', () => {
  engines.each('starts beside this one (control)', async (engine) => {
    const { open } = await openAt(engine)

    await startAsVersionBefore(open())

    // The schema of the version before ends with migration 3.
    expect(await oldestAllowed(open())).toBe(3)
  })

  engines.each('does not start while a move goes on, and spoils nothing by trying', async (engine) => {
    const { metadata, open } = await openAt(engine)
    await freeze(metadata, goal, clock)
    const [rows, versions] = [await dumpRows(open()), await versionsOf(open())]

    expect(String(await errorOf(startAsVersionBefore(open())))).toContain('already exists')

    expect(await dumpRows(open())).toEqual(rows)
    expect(await versionsOf(open())).toEqual(versions)
    // And one that can read who is too old finds itself there.
    expect(await oldestAllowed(open())).toBe(newest)
  })

  engines.each('starts again when the move has been aborted', async (engine) => {
    const { metadata, open } = await openAt(engine)
    const versions = await versionsOf(open())
    await freeze(metadata, goal, clock)
    await freeze(metadata, goal, clock)
    await markAborted(metadata, () => undefined)
    expect(await errorOf(startAsVersionBefore(open()))).toBeDefined()

    await thaw(metadata, 'a move')

    await startAsVersionBefore(open())
    expect(await versionsOf(open())).toEqual(versions)
  })
})

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

  engines.each('starts while a move goes on, and finds its schema whole', async (engine) => {
    const { metadata, open } = await openAt(engine)
    await freeze(metadata, goal, clock)

    for (const mayMigrate of [true, false]) {
      await (await SqlMetadataStore.open(open(), { mayMigrate })).probe()
    }

    expect([await listMissing(open()), await migrate(open())]).toEqual([[], []])
  })
})
