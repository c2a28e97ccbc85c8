import type { RepositoryPattern } from '../oci/repository-pattern.ts'

/** What a caller may do. `operate`: enable and disable the account, read its statistics, manage its users and keys. */
export type Right = 'pull' | 'push' | 'delete' | 'operate'

/** What a caller presents. The secret must never get into a log, a header or a row. */
export type Credential =
  | { readonly kind: 'api-key'; readonly secret: string }
  | { readonly kind: 'bearer'; readonly secret: string }
  /** A user name with the password or an API key of the user. The name has no colon and no control character. */
  | { readonly kind: 'login'; readonly userName: string; readonly secret: string }

/** Rights over all repositories of the account, or over those that match one of the patterns. */
export interface Grant {
  readonly rights: ReadonlySet<Right>
  readonly repositories?: readonly RepositoryPattern[] | undefined
}

/** The caller of a request. */
export interface Principal {
  /** The tenant. Its principals see everything that belongs to this account, and nothing else. */
  readonly account: string
  /** Unique within the account, and always the same for one caller. Upload sessions belong to a subject. */
  readonly subject: string
  /** With a limited API key: only those roles of the user whose rights the key has in full. */
  readonly roles: readonly string[]
  /** With a limited API key: all roles of the user. */
  readonly userRoles?: readonly string[] | undefined
  /** Everything that the caller may do. What no grant allows is refused. */
  readonly grants: readonly Grant[]
  /**
   * When the caller's API key expires, in milliseconds since 1970. No credential that the caller creates may last
   * longer. Undefined for a token, because its user can log in again.
   */
  readonly keyExpiresAt?: number | undefined
  /** Identifies the credential in the log without revealing it. */
  readonly fingerprint: string
  /** The address of the client. Only the principal of a request that changes something has it. */
  readonly address?: string | undefined
  /** The name of the API key, if the identity service tells it. */
  readonly keyName?: string | undefined
  /** When the credential expires, in milliseconds since 1970. No cache may keep the principal longer. */
  readonly expiresAt?: number | undefined
  /**
   * `anonymous`: a caller without credentials; instead of a refusal, it gets a challenge. `scoped`: a token for certain
   * repositories; the caller can fetch another token. Undefined: a caller with a user's own credentials.
   */
  readonly kind?: 'anonymous' | 'scoped'
  /** The identity service could not confirm the credential lately. Then only pull and push are allowed. */
  readonly isUnconfirmed?: true
  /** The repositories in the catalog. Undefined: those that the caller may pull. */
  readonly catalog?: 'all' | 'none' | readonly RepositoryPattern[]
}

/** The client whose credential is checked. */
export interface Origin {
  /** Failures are counted per name, so one client cannot make the identity service look unavailable for all others. */
  readonly name: string
  /** The client's address, if it is known. A remote identity service can use it for limits of its own. */
  readonly address?: string | undefined
}

/** Checks credentials. */
export interface Identity {
  /**
   * The principal. Undefined if the credential is wrong, expired or revoked: the caller gets 401 only then. Rejects
   * with `Unavailable` if this cannot be found out now.
   */
  authenticate(credential: Credential, origin?: Origin): Promise<Principal | undefined>
}

/** An identity with a cache. */
export interface CachingIdentity extends Identity {
  /** Synchronous, from the cache only. Undefined says nothing about the credential. */
  findCached(credential: Credential): Principal | undefined
  /**
   * As `findCached`, for the credential in the value of a header. `parse` is called only if the value was not seen
   * lately, because parsing costs more than the look-up.
   */
  findByHeader(value: string, parse: () => Credential | undefined): Principal | undefined
  /**
   * Whether this process created the credential, and it cannot be guessed. The check of such a credential costs one
   * signature or one row.
   */
  isUnguessable(credential: Credential): boolean
  /** Empties the cache, because users or keys have changed. Also drops the results of checks that are running. */
  clear(): Promise<void>
}
