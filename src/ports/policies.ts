import type { RowId } from './row-id.ts'

/** The names are stored. */
export type PolicyKind = 'immutable-tags' | 'retention'

/** A policy of an account. */
export interface StoredPolicy {
  /** JSON. The use cases know its form. */
  readonly body: string
  /** Milliseconds since 1970, by the clock of the metadata store. */
  readonly changedAt: number
  /** The subject of the caller. */
  readonly changedBy: string
}

/** What requests learn of the policies with the row of the account, without another query. */
export interface PolicyMarks {
  /** Whether the account has a policy for immutable tags. */
  readonly hasImmutableTags: boolean
  /** How long untagged manifests of the account are kept. 0: for ever. Undefined: as long as the registry keeps them. */
  readonly untaggedMs: number | undefined
}

/** The policies of accounts: at most one of each kind. */
export interface Policies {
  find(accountId: RowId, kind: PolicyKind): Promise<StoredPolicy | undefined>

  /** At most `limit` accounts after `after` that have a policy of this kind, in the order of their ids. */
  listAccounts(kind: PolicyKind, after: RowId | undefined, limit: number): Promise<RowId[]>

  // The following methods are for transactions.

  /**
   * Waits for the transactions that have called `Accounts.findLocked` for the account, and delays new ones until this
   * transaction ends. They see its changes afterwards, on every server. So a policy holds as soon as it is acknowledged.
   */
  lock(accountId: RowId): Promise<void>

  /** After `lock`. Adds or replaces the policy. */
  set(accountId: RowId, kind: PolicyKind, body: string, changedBy: string): Promise<void>

  /** After `lock`. False if there is no such policy. */
  remove(accountId: RowId, kind: PolicyKind): Promise<boolean>

  /** After `lock`. */
  setMarks(accountId: RowId, marks: PolicyMarks): Promise<void>
}
