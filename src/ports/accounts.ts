import type { RowId } from './row-id.ts'

/** A tenant's registry: on or off. An account that was never enabled has no row. */
export interface Account {
  readonly id: RowId
  readonly name: string
  readonly state: 'enabled' | 'disabled'
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

  /** Sets the state, making the account if need be. Idempotent. */
  setState(name: string, state: Account['state']): Promise<void>

  /** In byte order of their names, after `after`, at most `limit`. */
  list(after: string | undefined, limit: number): Promise<Account[]>

  measure(id: RowId): Promise<AccountContent>

  /** Adds to the count of repositories that have a manifest. */
  addImages(id: RowId, change: 1 | -1): Promise<void>
}
