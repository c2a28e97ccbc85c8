import type { RowId } from './row-id.ts'

/** A tenant's registry. An account that was never used has no row. */
export interface Account {
  readonly id: RowId
  readonly name: string
  /** `suspended`: disabled by the operator of the service; the account cannot lift it. */
  readonly state: 'enabled' | 'disabled' | 'suspended'
  /** Repositories with at least one manifest. Kept by the transactions that change it, never counted. */
  readonly imageCount: number
  /** The store as a whole takes no changes now. */
  readonly isReadOnly: boolean
}

/** What an account holds, counted when asked for: for operators' eyes, never on a request's way. */
export interface AccountContent {
  readonly repositories: number
  readonly manifests: number
  readonly tags: number
  readonly blobs: number
  readonly blobBytes: number
}

export interface Accounts {
  find(name: string): Promise<Account | undefined>

  /** As `find`; inside a transaction neither state nor `isReadOnly` can change until the transaction ends. */
  findLocked(id: RowId): Promise<Account | undefined>

  /** Makes the account enabled unless it has a row already, whose state stays as it is. */
  ensure(name: string): Promise<Account>

  /**
   * Sets the state and creates the account if there is none. Idempotent. A suspended account stays suspended: `enabled`
   * changes nothing then, and `disabled` becomes its state after the suspension. Returns the account as it is afterwards.
   */
  setState(name: string, state: 'enabled' | 'disabled'): Promise<Account>

  /** Suspends the account and creates it if there is none. Idempotent. */
  suspend(name: string): Promise<void>

  /** Lifts the suspension: the account has the state that it had before. Idempotent. */
  resume(name: string): Promise<Account | undefined>

  /** In byte order of their names, after `after`, at most `limit`. */
  list(after: string | undefined, limit: number): Promise<Account[]>

  measure(id: RowId): Promise<AccountContent>

  /** Adds to the count of repositories that have a manifest. */
  changeImageCount(id: RowId, change: 1 | -1): Promise<void>
}
