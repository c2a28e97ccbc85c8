import { ByteCache } from '../../lib/byte-cache.ts'
import type { MetadataStore, Tables } from '../../ports/metadata-store.ts'
import type { SigningKeys } from '../../ports/signing-keys.ts'
import type { CopiedObjects, MovableBlobs } from '../../ports/store-move.ts'
import type { Database, Queryable } from './database.ts'
import { listMissing, migrate, refuseCodeWithoutInlineBlobs, SchemaMismatch } from './migrate.ts'
import { SqlCopiedObjects, SqlMovableBlobs } from './store-move/copied-objects.ts'
import { copyRows, listOccupied, type RowCounts, type RowMove } from './store-move/copy-rows.ts'
import { SqlAccountDeletions } from './tables/account-deletions.ts'
import { SqlAccounts } from './tables/accounts.ts'
import { SqlApiKeys } from './tables/api-keys.ts'
import { SqlAudit } from './tables/audit.ts'
import { SqlBlobs } from './tables/blobs.ts'
import { SqlDeletedManifests } from './tables/deleted-manifests.ts'
import { SqlDeletionPreviews } from './tables/deletion-previews.ts'
import { SqlEvents } from './tables/events.ts'
import { SqlGarbage } from './tables/garbage.ts'
import { SqlManifests } from './tables/manifests.ts'
import { SqlMarks } from './tables/marks.ts'
import { SqlPolicies } from './tables/policies.ts'
import { SqlPulls } from './tables/pulls.ts'
import { SqlQuotas } from './tables/quotas.ts'
import { SqlRepositories } from './tables/repositories.ts'
import { SqlSigningKeys } from './tables/signing-keys.ts'
import { SqlTagHistory } from './tables/tag-history.ts'
import { SqlTags } from './tables/tags.ts'
import { SqlUntagged } from './tables/untagged.ts'
import { SqlUploads } from './tables/uploads.ts'
import { SqlUsage } from './tables/usage.ts'
import { ImmediateUsageLog, TransactionUsageLog, type UsageLog } from './tables/usage-log.ts'
import { SqlUsageRecount } from './tables/usage-recount.ts'
import { SqlUsers } from './tables/users.ts'
import { SqlWebhookDeliveries } from './tables/webhook-deliveries.ts'
import { SqlWebhooks } from './tables/webhooks.ts'

/** Memory for the bytes of inline blobs that were read last. */
const inlineBytesMax = 16 * 1024 * 1024

class SqlTables implements Tables {
  readonly accounts: SqlAccounts
  readonly accountDeletions: SqlAccountDeletions
  readonly repositories: SqlRepositories
  readonly manifests: SqlManifests
  readonly tags: SqlTags
  readonly tagHistory: SqlTagHistory
  readonly untagged: SqlUntagged
  readonly pulls: SqlPulls
  readonly audit: SqlAudit
  readonly events: SqlEvents
  readonly deletedManifests: SqlDeletedManifests
  readonly policies: SqlPolicies
  readonly deletionPreviews: SqlDeletionPreviews
  readonly webhooks: SqlWebhooks
  readonly webhookDeliveries: SqlWebhookDeliveries
  readonly blobs: SqlBlobs
  readonly uploads: SqlUploads
  readonly garbage: SqlGarbage
  readonly usage: SqlUsage
  readonly quotas: SqlQuotas
  readonly users: SqlUsers
  readonly apiKeys: SqlApiKeys
  readonly marks: SqlMarks

  constructor(queries: Queryable, usage: UsageLog, inlineBytes?: ByteCache) {
    this.accounts = new SqlAccounts(queries)
    this.accountDeletions = new SqlAccountDeletions(queries)
    this.repositories = new SqlRepositories(queries, usage)
    this.manifests = new SqlManifests(queries, usage)
    this.tags = new SqlTags(queries, usage)
    this.tagHistory = new SqlTagHistory(queries)
    this.untagged = new SqlUntagged(queries)
    this.pulls = new SqlPulls(queries)
    this.audit = new SqlAudit(queries)
    this.events = new SqlEvents(queries)
    this.deletedManifests = new SqlDeletedManifests(queries)
    this.policies = new SqlPolicies(queries)
    this.deletionPreviews = new SqlDeletionPreviews(queries)
    this.webhooks = new SqlWebhooks(queries)
    this.webhookDeliveries = new SqlWebhookDeliveries(queries)
    this.blobs = new SqlBlobs(queries, usage, inlineBytes)
    this.uploads = new SqlUploads(queries)
    this.garbage = new SqlGarbage(queries, usage)
    this.usage = new SqlUsage(queries)
    this.quotas = new SqlQuotas(queries)
    this.users = new SqlUsers(queries)
    this.apiKeys = new SqlApiKeys(queries)
    this.marks = new SqlMarks(queries)
  }
}

/**
 * The metadata store over SQLite or PostgreSQL. `tables/` has one class for each port, and its statements are the same for both
 * engines; `database.ts` documents the few macros. The database enforces what the ports promise: foreign keys with RESTRICT, one
 * transaction for each change, and row locks before decisions.
 */
export class SqlMetadataStore extends SqlTables implements MetadataStore {
  readonly #database: Database
  readonly usageRecount: SqlUsageRecount

  private constructor(database: Database) {
    super(database, new ImmediateUsageLog(database), new ByteCache(inlineBytesMax))
    this.#database = database
    this.usageRecount = new SqlUsageRecount(database)
  }

  /** Migrates the schema first. Without `mayMigrate` it fails if a migration is missing. */
  static async open(database: Database, { mayMigrate = true } = {}): Promise<SqlMetadataStore> {
    try {
      if (mayMigrate) await migrate(database)
      else await requireNothingMissing(database)
      return new SqlMetadataStore(database)
    } catch (error) {
      await database.close()
      throw error
    }
  }

  /** Call this before the first inline blob is stored. Servers that cannot read such blobs do not start from now on. */
  async refuseServersWithoutInlineBlobs(): Promise<void> {
    await refuseCodeWithoutInlineBlobs(this.#database)
  }

  /** The signing keys, if they are stored in the database and not as files. */
  signingKeys(): SigningKeys {
    return new SqlSigningKeys(this.#database)
  }

  /** For a move from here. */
  movableBlobs(): MovableBlobs {
    return new SqlMovableBlobs(this.#database)
  }

  /** For a move to here. */
  copiedObjects(): CopiedObjects {
    return new SqlCopiedObjects(this.#database)
  }

  /** The tables that hold something of a registry. */
  listOccupied(): Promise<readonly string[]> {
    return listOccupied(this.#database)
  }

  /** All that the other store holds, as of one moment, in one transaction here. There must be nothing here yet. */
  takeRowsOf(source: SqlMetadataStore, move: RowMove): Promise<RowCounts> {
    return copyRows(source.#database, this.#database, move)
  }

  transaction<T>(work: (tables: Tables) => Promise<T>, options?: { readonly mayBeLost?: boolean }): Promise<T> {
    const workAndRecord = async (queries: Queryable) => {
      const usage = new TransactionUsageLog()
      const result = await work(new SqlTables(queries, usage))
      await usage.append(queries)
      return result
    }
    return this.#database.transaction(workAndRecord, options)
  }

  flush(): Promise<void> {
    return this.#database.flush()
  }

  async now(): Promise<number> {
    const row = await this.#database.first<{ now: number }>('SELECT {now} AS now', [])
    return row?.now ?? Number.NaN
  }

  async probe(): Promise<void> {
    await this.#database.first('SELECT 1 AS alive', [])
  }

  async close(): Promise<void> {
    await this.#database.close()
  }
}

async function requireNothingMissing(database: Database): Promise<void> {
  const missing = await listMissing(database)
  if (missing.length === 0) return
  throw new SchemaMismatch(`the database lacks the migrations ${missing.join(', ')}: run \`berth migrate\``)
}
