// How a schema is brought up to date, on both engines.
import { describe, expect, test } from 'bun:test'
import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { listAll, listMissing, migrate, SchemaMismatch } from '../../src/adapters/metadata-sql/migrate.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import { useEngines } from '../support/stores/both-engines.ts'

const engines = useEngines('migrations')
const newest = listAll().length

async function versionsOf(database: Database): Promise<readonly number[]> {
  const rows = await database.all<{ version: number }>('SELECT version FROM schema_versions ORDER BY version', [])
  return rows.map(({ version }) => version)
}

describe('a schema', () => {
  test('has versions in one unbroken row', () => {
    expect(listAll()).toEqual(Array.from({ length: newest }, (_, at) => at + 1))
    expect(newest).toBeGreaterThan(2)
  })

  engines.each('that is empty lacks all, and is not touched by the look', async ({ place }) => {
    const database = (await place())()

    expect(await listMissing(database)).toEqual(listAll())
    expect(await database.hasTable('schema_versions')).toBe(false)

    expect(await migrate(database)).toEqual(listAll())
    expect(await versionsOf(database)).toEqual(listAll())
    expect([await listMissing(database), await migrate(database)]).toEqual([[], []])
  })

  engines.each('of version 2 is brought up, and what it holds stays', async ({ place }) => {
    const open = await place()
    const old = open()
    expect(await migrate(old, 2)).toEqual([1, 2])
    expect(await versionsOf(old)).toEqual([1, 2])
    await old.run(
      "INSERT INTO accounts (name, state, image_count, created_at, changed_at) VALUES ('acme', 'disabled', 7, 1, 2)",
      [],
    )
    await old.run(
      "INSERT INTO users (name, password_hash, roles, account, created_at, token_epoch) VALUES ('ann', 'hash', '[]', 'acme', 3, 4)",
      [],
    )
    const account = (await old.first<{ id: number }>('SELECT id FROM accounts', []))?.id ?? 0
    await old.run("INSERT INTO repositories (account_id, name, created_at) VALUES ($1, 'app', 5)", [account])
    await old.run(
      `INSERT INTO uploads (account_id, id, repository_id, subject, storage_key, created_at, touched_at)
       SELECT $1, 'upload', r.id, 'ann', 'key', 6, 6 FROM repositories r`,
      [account],
    )
    expect(await listMissing(old)).toEqual(listAll().slice(2))

    const metadata = await SqlMetadataStore.open(open())

    expect(await metadata.accounts.find('acme')).toMatchObject({ state: 'disabled', isReadOnly: false })
    expect((await metadata.usage.findOfAccount(account)).images).toBe(7)
    expect(await metadata.users.find('ann')).toMatchObject({ passwordHash: 'hash', tokenEpoch: 4, account: 'acme' })
    const owner = { accountId: account, repository: 'app' as never, subject: 'ann' }
    expect(await metadata.uploads.find(owner, 'upload' as never)).toMatchObject({
      open: { storageKey: 'key', receivedDigest: undefined },
    })
    expect(await versionsOf(open())).toEqual(listAll())
  })

  engines.each('that may not be changed is refused in words that say what to do', async ({ place }) => {
    const open = await place()
    await migrate(open(), 2)

    const refusal = await errorOf(SqlMetadataStore.open(open(), { mayMigrate: false }))

    expect(refusal).toBeInstanceOf(SchemaMismatch)
    expect(String(refusal)).toContain(`lacks the migrations ${listAll().slice(2).join(', ')}: run \`berth migrate\``)
    expect(await versionsOf(open())).toEqual([1, 2])

    await migrate(open())
    await (await SqlMetadataStore.open(open(), { mayMigrate: false })).probe()
  })

  /** As a Berth of tomorrow leaves it. */
  async function age(database: Database, oldestCode: number): Promise<void> {
    await migrate(database)
    await database.run('INSERT INTO schema_versions (version, applied_at, oldest_code) VALUES (99, 0, $1)', [
      oldestCode,
    ])
  }

  engines.each('of a newer Berth that this one would damage is refused', async ({ place }) => {
    const open = await place()
    await age(open(), 99)

    for (const look of [
      () => SqlMetadataStore.open(open()),
      () => SqlMetadataStore.open(open(), { mayMigrate: false }),
      () => migrate(open()),
      () => listMissing(open()),
    ]) {
      const refusal = await errorOf(look())
      expect(refusal).toBeInstanceOf(SchemaMismatch)
      expect(String(refusal)).toContain(`schema 99; this one knows ${newest}`)
    }
  })

  engines.each('of the neighbouring version is worked on beside it', async ({ place }) => {
    const open = await place()
    await age(open(), newest)

    for (const mayMigrate of [true, false]) {
      const metadata = await SqlMetadataStore.open(open(), { mayMigrate })
      expect(await metadata.accounts.ensure('acme')).toMatchObject({ name: 'acme', state: 'enabled' })
    }
    expect(await listMissing(open())).toEqual([])
  })

  // With SQLite several processes do, in metadata-store.test.ts: in one, each would keep the others from ending.
  testNeeding(postgres, 'that twenty bring up at once is brought up once (PostgreSQL)', async () => {
    const open = await engines.postgres.place()
    const databases = Array.from({ length: 20 }, open)

    const applied = await Promise.all(databases.map((database) => migrate(database)))

    expect(applied.flat().sort((one, other) => one - other)).toEqual(listAll())
    expect(await versionsOf(open())).toEqual(listAll())
    for (const database of databases) expect(await listMissing(database)).toEqual([])
  })
})
