import type { RepositoryPattern } from '../oci/repository-pattern.ts'
import type { Right } from './identity.ts'
import type { RowId } from './row-id.ts'
import type { User } from './users.ts'

/** The limits of an API key. A key never has more rights than its user. */
export interface KeyLimits {
  /** Milliseconds since 1970. Undefined: the key does not expire. */
  readonly expiresAt: number | undefined
  /** Undefined: all rights of the user. */
  readonly rights: readonly Right[] | undefined
  /** Undefined: all repositories of the account. */
  readonly repositories: readonly RepositoryPattern[] | undefined
}

/** An API key without its secret. Only a hash of the secret is stored. */
export interface ApiKey extends KeyLimits {
  readonly id: RowId
  readonly name: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  /** Milliseconds since 1970. It may be some minutes too old, because uses are recorded in batches. */
  readonly lastUsedAt: number | undefined
}

export interface NewApiKey extends KeyLimits {
  readonly userId: RowId
  readonly name: string
  readonly secretHash: string
}

export interface FoundKey {
  readonly key: ApiKey
  readonly user: User
}

/** The API keys of the users of the embedded identity service. Names are unique among the keys of one user. */
export interface ApiKeys {
  /** The key with this hash, and its user, in one consistent read. The caller checks whether the key has expired. */
  find(secretHash: string): Promise<FoundKey | undefined>

  /** All keys of the user, in the order of their names. */
  list(userId: RowId): Promise<ApiKey[]>

  /** False, without a change, if the user has a key of that name, or if this key exists already. */
  add(key: NewApiKey): Promise<boolean>

  /** Revokes the key. False if there is no key of that name. */
  remove(userId: RowId, name: string): Promise<boolean>

  /** Whether a use of any key of any user was ever recorded. */
  hasAnyBeenUsed(): Promise<boolean>

  /** Sets `lastUsedAt` of these keys to now. Keys that no longer exist are ignored. */
  recordUses(ids: readonly RowId[]): Promise<void>
}
