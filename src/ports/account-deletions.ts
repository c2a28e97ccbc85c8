import type { RowId } from './row-id.ts'

/** An account that is being deleted. */
export interface DyingAccount {
  readonly id: RowId
  readonly name: string
}

/**
 * The deletion of accounts, in portions. From `request` on, the account stays suspended, so nothing is added to it. Nothing of
 * another account changes. The deletion cannot be cancelled.
 */
export interface AccountDeletions {
  /** Marks the account. Idempotent. False unless the account is suspended. */
  request(id: RowId): Promise<boolean>

  /** The first account after `after`, by id, that is being deleted. */
  findNext(after: RowId): Promise<DyingAccount | undefined>

  /**
   * Inside a transaction. Removes a few hundred rows of an account that is being deleted: content, users, keys, events and
   * entries of the audit log. The keys of objects go to the trash. Returns the number of removed rows; 0 if there are none.
   */
  removeSome(account: DyingAccount): Promise<number>

  /**
   * Inside a transaction. Removes the row of the account, so its name is free, if the deletion was requested at least
   * `blockedMs` ago. Rejects if the account still has content.
   */
  finish(account: DyingAccount, blockedMs: number): Promise<boolean>
}
