import type { AccountDeletions } from './account-deletions.ts'
import type { Accounts } from './accounts.ts'
import type { ApiKeys } from './api-keys.ts'
import type { Audit } from './audit.ts'
import type { Blobs } from './blobs.ts'
import type { DeletedManifests } from './deleted-manifests.ts'
import type { DeletionPreviews } from './deletion-previews.ts'
import type { Events } from './events.ts'
import type { Garbage } from './garbage.ts'
import type { Manifests } from './manifests.ts'
import type { Marks } from './marks.ts'
import type { Policies } from './policies.ts'
import type { Pulls } from './pulls.ts'
import type { Quotas } from './quotas.ts'
import type { Repositories } from './repositories.ts'
import type { TagHistory } from './tag-history.ts'
import type { Tags } from './tags.ts'
import type { Untagged } from './untagged.ts'
import type { Uploads } from './uploads.ts'
import type { Usage, UsageRecount } from './usage.ts'
import type { Users } from './users.ts'
import type { WebhookDeliveries, Webhooks } from './webhooks.ts'

/**
 * All metadata, by concept. Methods return undefined for what does not exist. The use cases decide whether to refuse.
 */
export interface Tables {
  readonly accounts: Accounts
  readonly accountDeletions: AccountDeletions
  readonly repositories: Repositories
  readonly manifests: Manifests
  readonly tags: Tags
  readonly tagHistory: TagHistory
  readonly untagged: Untagged
  readonly pulls: Pulls
  readonly audit: Audit
  readonly events: Events
  readonly deletedManifests: DeletedManifests
  readonly policies: Policies
  readonly deletionPreviews: DeletionPreviews
  readonly webhooks: Webhooks
  readonly webhookDeliveries: WebhookDeliveries
  readonly blobs: Blobs
  readonly uploads: Uploads
  readonly garbage: Garbage
  readonly usage: Usage
  readonly quotas: Quotas
  readonly users: Users
  readonly apiKeys: ApiKeys
  readonly marks: Marks
}

/**
 * The metadata store. A change by a method outside of `transaction` is atomic, and durable when the method resolves.
 * Others may see it shortly before that; `flush` is for a caller that acknowledges what it has only read.
 * All servers see the same data: a read that begins after a write has resolved sees the write. If the engine fails, a
 * method rejects with `Unavailable`, with the engine's error as the cause.
 *
 * Every implementation guarantees the following, whatever the use cases do:
 *  - a storage key is in at most one row of the tables uploads, blobs and trash. Until a move ends, the keys of its
 *    copies are in the table copied_objects and in none of these;
 *  - the entries of a manifest and the manifest of a tag exist as long as they are named (foreign keys with RESTRICT);
 *  - rows of one account never refer to rows of another: every foreign key between tables of content contains the
 *    account.
 */
export interface MetadataStore extends Tables {
  /**
   * Runs `work` in a transaction: all of its changes happen, or none. Durable when it resolves. `work` sees its own
   * changes; others see them after the end. If `work` rejects, the transaction is rolled back and the error is passed
   * on.
   *
   * `work` may run several times: an engine can ask for a repetition, and a change that shares a transaction with another
   * one runs again if the other one fails. So it must have no effects except on the tables that it gets, and must wait for
   * nothing else: no blob store, no network, no clock. It must not use the tables after it has ended. After a lost connection
   * it may be unknown whether the transaction was committed; then this rejects with `Unavailable`.
   *
   * With `mayBeLost` it may resolve before it is durable: a power failure can undo it, but only together with everything
   * that was committed later.
   */
  transaction<T>(work: (tables: Tables) => Promise<T>, options?: { readonly mayBeLost?: boolean }): Promise<T>

  readonly usageRecount: UsageRecount

  /** Resolves when every row that a read has returned so far is durable. */
  flush(): Promise<void>

  /** Milliseconds since 1970 by the clock of the store, which all servers share. */
  now(): Promise<number>

  /** Resolves if the store answers a query. */
  probe(): Promise<void>

  close(): Promise<void>
}
