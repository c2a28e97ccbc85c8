import type { RowId } from './row-id.ts'

/** A user of the embedded identity service. */
export interface User {
  readonly id: RowId
  readonly name: string
  /** An encoded Argon2id hash. Without one, the user cannot log in with a password. */
  readonly passwordHash: string | undefined
  readonly roles: readonly string[]
  readonly account: string
  readonly isDisabled: boolean
  /** A token contains the epoch of its issue. It is valid only while the user has the same epoch. */
  readonly tokenEpoch: number
}

export type NewUser = Omit<User, 'id' | 'tokenEpoch'>

/** The members to change. The others stay. A new password, and disabling the user, increase `tokenEpoch`. */
export type UserChange = Partial<Pick<User, 'passwordHash' | 'roles' | 'isDisabled'>>

/** The users of the embedded identity service. A name belongs to one user across all accounts. */
export interface Users {
  find(name: string): Promise<User | undefined>

  /** Inside a transaction. As `find`; no other transaction can change the user before this one ends. */
  findLocked(name: string): Promise<User | undefined>

  /**
   * Inside a transaction. Takes an exclusive lock of the account's users until the transaction ends, and waits for
   * another transaction that has it. Later reads see what that one has changed. Does nothing if the account has no
   * users.
   */
  lockAccount(account: string): Promise<void>

  count(account: string): Promise<number>

  /** At most `limit` users with names after `after`, in byte order, of one account or of all. */
  list(account: string | undefined, after: string | undefined, limit: number): Promise<User[]>

  /** Undefined, without a change, if there is a user of that name. */
  add(user: NewUser): Promise<User | undefined>

  /** Returns the changed user. Undefined if there is no such user. */
  change(id: RowId, change: UserChange): Promise<User | undefined>
}
