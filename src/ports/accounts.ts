import type { Awaitable } from './awaitable.ts'
import type { PolicyMarks } from './policies.ts'
import type { Quota } from './quotas.ts'
import type { RowId } from './row-id.ts'

/** A tenant and its registry. An account that was never used has no row. */
export interface Account extends PolicyMarks {
  readonly id: RowId
  readonly name: string
  /** `suspended`: disabled by the operator of the service. The account cannot change this itself. */
  readonly state: 'enabled' | 'disabled' | 'suspended'
  /** True while the whole store takes no changes (the mark `read-only`). It is the same for every account. */
  readonly isReadOnly: boolean
  /** Undefined: no limit. */
  readonly quota: Quota | undefined
}

/** What an account contains. */
export interface AccountContent {
  readonly repositories: number
  readonly manifests: number
  readonly tags: number
  readonly blobs: number
  readonly blobBytes: number
}

/** The accounts of the registry. */
export interface Accounts {
  /** May be answered from memory if nothing else can change the row. Otherwise it reads the row. */
  find(name: string): Awaitable<Account | undefined>

  /**
   * Inside a transaction. As `find`. `setState` with `disabled`, `suspend` and `Marks.lockExclusively` resolve only
   * after this transaction has ended.
   */
  findLocked(id: RowId): Promise<Account | undefined>

  /** Returns the account. Creates it in the state `enabled` if it has no row. An existing state does not change. */
  ensure(name: string): Promise<Account>

  /**
   * Sets the state. Creates the account if it has no row. Idempotent. Returns the account as it is afterwards. A
   * suspended account stays suspended: `enabled` changes nothing, and `disabled` becomes its state when the suspension
   * ends. With `disabled`, waits for the transactions that have called `findLocked` for the account.
   */
  setState(name: string, state: 'enabled' | 'disabled'): Promise<Account>

  /** Suspends the account. Creates it if it has no row. Idempotent. Waits as `setState` with `disabled` does. */
  suspend(name: string): Promise<void>

  /**
   * Ends the suspension: the account has its earlier state again. Idempotent. An account that is being deleted stays
   * suspended. Undefined if there is no such account.
   */
  resume(name: string): Promise<Account | undefined>

  /** At most `limit` accounts with names after `after`, in byte order of the names. */
  list(after: string | undefined, limit: number): Promise<Account[]>

  /** Counts rows, so it may be slow. For operators; no request calls it. */
  measure(id: RowId): Promise<AccountContent>
}
