import type { RowId } from './row-id.ts'

/** A record of the embedded identity service. */
export interface User {
  readonly id: RowId
  readonly name: string
  /** Argon2id in its own text form; without one the user cannot log in by password. */
  readonly passwordHash: string | undefined
  readonly roles: readonly string[]
  readonly account: string
  readonly isDisabled: boolean
  /** Tokens carry the number under which they were issued; those of an older one are good no more. */
  readonly tokenEpoch: number
}

export type NewUser = Omit<User, 'id' | 'tokenEpoch'>

/** What a user's record can be changed to; what is absent stays. A new password, or being disabled, ends all tokens. */
export type UserChange = Partial<Pick<User, 'passwordHash' | 'roles' | 'isDisabled'>>

/** The users of the embedded identity service. A name is one user's, whatever his account: it is what he logs in by. */
export interface Users {
  find(name: string): Promise<User | undefined>

  /** As `find`; inside a transaction nobody else changes the user until it ends. */
  findLocked(name: string): Promise<User | undefined>

  /**
   * Inside a transaction: waits until no other transaction has called this for the account, and then makes the others wait
   * until this one ends. What is read afterwards includes all that they have changed. An account without users has nothing
   * to wait for.
   */
  lockAccount(account: string): Promise<void>

  count(account: string): Promise<number>

  /** In byte order of their names, after `after`, at most `limit`; of one account, or of all. */
  list(account: string | undefined, after: string | undefined, limit: number): Promise<User[]>

  /** Undefined, and nothing is changed, when there is one of that name already. */
  add(user: NewUser): Promise<User | undefined>

  /** Undefined when there is no such user. */
  change(id: RowId, change: UserChange): Promise<User | undefined>
}
