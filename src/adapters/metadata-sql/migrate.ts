import type { Database, Queryable } from './database.ts'
import { initial } from './migrations/0001-initial.ts'
import { keysWithLimits } from './migrations/0002-keys-with-limits.ts'
import { manyReplicas } from './migrations/0003-many-replicas.ts'
import { suspendedAccounts } from './migrations/0004-suspended-accounts.ts'
import { damagedBlobs } from './migrations/0005-damaged-blobs.ts'
import { openUploads } from './migrations/0006-open-uploads.ts'
import { closingUploads } from './migrations/0007-closing-uploads.ts'
import { inlineBlobs } from './migrations/0008-inline-blobs.ts'
import { tagHistory } from './migrations/0009-tag-history.ts'
import { untaggedManifests } from './migrations/0010-untagged-manifests.ts'
import { pulls } from './migrations/0011-pulls.ts'
import { repositoriesWithoutManifests } from './migrations/0012-repositories-without-manifests.ts'
import { events } from './migrations/0013-events.ts'
import { deletedManifests } from './migrations/0014-deleted-manifests.ts'
import { policies } from './migrations/0015-policies.ts'
import { usage } from './migrations/0016-usage.ts'
import { audit } from './migrations/0017-audit.ts'
import { accountDeletions } from './migrations/0018-account-deletions.ts'
import { quotas } from './migrations/0019-quotas.ts'
import { webhooks } from './migrations/0020-webhooks.ts'

interface Migration {
  readonly version: number
  readonly sql: string
  /**
   * The oldest code that can work with the schema after this migration. Code is named by the newest migration that it knows.
   * While servers are replaced one by one, two neighbouring versions work on one database. So a change that older code cannot
   * work with is made in two releases: the first adds the new parts, the second removes the old ones.
   */
  readonly oldestCode: number
}

/** In order. A released migration is never changed; a later one corrects it. */
const migrations: readonly Migration[] = [
  { version: 1, sql: initial, oldestCode: 1 },
  { version: 2, sql: keysWithLimits, oldestCode: 1 },
  { version: 3, sql: manyReplicas, oldestCode: 2 },
  { version: 4, sql: suspendedAccounts, oldestCode: 3 },
  { version: 5, sql: damagedBlobs, oldestCode: 3 },
  { version: 6, sql: openUploads, oldestCode: 3 },
  { version: 7, sql: closingUploads, oldestCode: 3 },
  { version: 8, sql: inlineBlobs, oldestCode: 3 },
  { version: 9, sql: tagHistory, oldestCode: 3 },
  { version: 10, sql: untaggedManifests, oldestCode: 3 },
  { version: 11, sql: pulls, oldestCode: 3 },
  { version: 12, sql: repositoriesWithoutManifests, oldestCode: 3 },
  { version: 13, sql: events, oldestCode: 3 },
  { version: 14, sql: deletedManifests, oldestCode: 3 },
  { version: 15, sql: policies, oldestCode: 3 },
  { version: 16, sql: usage, oldestCode: 16 },
  { version: 17, sql: audit, oldestCode: 16 },
  { version: 18, sql: accountDeletions, oldestCode: 16 },
  { version: 19, sql: quotas, oldestCode: 16 },
  { version: 20, sql: webhooks, oldestCode: 16 },
]

const newestKnown = migrations.length
/** The migration that added the column `schema_versions.oldest_code`. */
const sinceOldestCode = 3

/** The migration that added inline blobs. Code from before it cannot read them, but works with the schema otherwise. */
const sinceInlineBlobs = 8

/** `migrate-store` once renumbered the first version to this, to keep code from before `oldest_code` out during a move. */
const hiddenFirst = 0

/** This code cannot work with the schema, and may not or cannot migrate it. */
export class SchemaMismatch extends Error {
  override readonly name = 'SchemaMismatch'
}

/** The migrations that are not applied. Changes nothing, not even an empty database. */
export async function listMissing(database: Database): Promise<number[]> {
  const applied = await listApplied(database)
  await checkNotTooNew(database, applied)
  return listAll().filter((version) => !applied.has(version))
}

/** All migrations: those that an empty database needs. */
export function listAll(): number[] {
  return migrations.map(({ version }) => version)
}

/** Applies the missing migrations, each in a transaction, and returns their versions. */
export async function migrate(database: Database, upTo = newestKnown): Promise<number[]> {
  // Most starts have nothing to do and must not wait for the lock.
  if ((await listMissing(database)).length === 0) return []
  return database.withMigrationLock(() => applyMissing(database, upTo))
}

async function listApplied(database: Database): Promise<ReadonlySet<number>> {
  if (!(await database.hasTable('schema_versions'))) return new Set()
  return readApplied(database)
}

async function readApplied(queries: Queryable): Promise<ReadonlySet<number>> {
  const rows = await queries.all<{ version: number }>('SELECT version FROM schema_versions', [])
  return new Set(rows.map(({ version }) => (version === hiddenFirst ? 1 : version)))
}

async function checkNotTooNew(database: Database, applied: ReadonlySet<number>): Promise<void> {
  if (!applied.has(sinceOldestCode)) return
  const row = await database.first<{ oldest_code: number }>(
    'SELECT max(oldest_code) AS oldest_code FROM schema_versions',
    [],
  )
  if ((row?.oldest_code ?? 0) <= newestKnown) return
  throw new SchemaMismatch(
    `a newer Berth has brought this database to schema ${Math.max(...applied)}; this one knows ${newestKnown}`,
  )
}

/** From now on, code that cannot read inline blobs refuses to start on this database. Code that already runs is not stopped. */
export async function refuseCodeWithoutInlineBlobs(queries: Pick<Queryable, 'run'>): Promise<void> {
  const statement = 'UPDATE schema_versions SET oldest_code = $1 WHERE version = $1 AND oldest_code < $1'
  await queries.run(statement, [sinceInlineBlobs])
}

async function applyMissing(database: Database, upTo: number): Promise<number[]> {
  await database.run(
    'CREATE TABLE IF NOT EXISTS schema_versions (version {number} PRIMARY KEY, applied_at {number} NOT NULL)',
    [],
  )
  const applied: number[] = []
  for (const migration of migrations.filter(({ version }) => version <= upTo)) {
    if (await applyOnce(database, migration)) applied.push(migration.version)
  }
  return applied
}

async function applyOnce(database: Database, { version, sql, oldestCode }: Migration): Promise<boolean> {
  return database.transaction(async (queries) => {
    if ((await readApplied(queries)).has(version)) return false
    for (const statement of sql.split(';')) {
      if (statement.trim() !== '') await queries.run(statement, [])
    }
    await queries.run('INSERT INTO schema_versions (version, applied_at) VALUES ($1, {now})', [version])
    if (version < sinceOldestCode) return true
    await queries.run('UPDATE schema_versions SET oldest_code = $2 WHERE version = $1', [version, oldestCode])
    return true
  })
}
