import type { RowId } from './row-id.ts'

/** The limits of an account. Undefined: no limit. */
export interface Quota {
  /** Stored bytes, as `AccountUsage` counts them. */
  readonly bytes: number | undefined
  /** Repositories with a manifest. */
  readonly repositories: number | undefined
  readonly tags: number | undefined
}

/** The quotas of accounts. `Account.quota` has the quota of an account with its other state. */
export interface Quotas {
  /** Replaces the quota. It holds for requests that begin afterwards. */
  set(accountId: RowId, quota: Quota): Promise<void>
}
