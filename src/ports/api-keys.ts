import type { RepositoryPattern } from '../oci/repository-pattern.ts'
import type { Right } from './identity.ts'
import type { RowId } from './row-id.ts'
import type { User } from './users.ts'

/** What an API key may do at most: of its user's rights these, in these repositories, until then. */
export interface KeyLimits {
  readonly expiresAt: number | undefined
  /** Without it, all of its user's rights. */
  readonly rights: readonly Right[] | undefined
  /** Without it, all repositories of the account. */
  readonly repositories: readonly RepositoryPattern[] | undefined
}

/** An API key as it is kept: its hash is looked up, and the key is never known again. */
export interface ApiKey extends KeyLimits {
  readonly id: RowId
  readonly name: string
  readonly createdAt: number
  /** Noted now and then, so a minute or two behind. */
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

/** The API keys of the embedded identity service's users. */
export interface ApiKeys {
  /** The key with this hash and its user as he is now, if it was not revoked; expiry is for the caller to judge. */
  find(secretHash: string): Promise<FoundKey | undefined>

  /** All keys of one user, by name. */
  list(userId: RowId): Promise<ApiKey[]>

  /** False, and nothing is changed, when the user has one of that name already. */
  add(key: NewApiKey): Promise<boolean>

  /** Revokes; false when there was none of that name. */
  remove(userId: RowId, name: string): Promise<boolean>

  /** Whether any key of any user was ever used, as far as it was noted. */
  hasAnyBeenUsed(): Promise<boolean>

  /** Notes that these keys were used by now. */
  recordUses(ids: readonly RowId[]): Promise<void>
}
