import type { RepositoryPattern } from '../oci/repository-pattern.ts'

/** What a caller may be allowed to do. `operate`: enable, disable, statistics, administration. */
export type Right = 'pull' | 'push' | 'delete' | 'operate'

/** What a caller presents, whatever carried it. The secret inside must never reach a log, a header or a row. */
export type Credential =
  | { readonly kind: 'api-key'; readonly secret: string }
  | { readonly kind: 'bearer'; readonly secret: string }
  /** A user's name with the user's password, or with one of the user's API keys. The name has no colon and no control character. */
  | { readonly kind: 'login'; readonly userName: string; readonly secret: string }

/** Some rights, over all repositories of the account or over those that match one of the patterns. */
export interface Grant {
  readonly rights: ReadonlySet<Right>
  readonly repositories?: readonly RepositoryPattern[] | undefined
}

/** Who is calling now. */
export interface Principal {
  /** The tenant: everything that is stored belongs to one account, and only its principals can see it. */
  readonly account: string
  /** Stable and unique within the account: uploads are bound to it. */
  readonly subject: string
  readonly roles: readonly string[]
  /** Behind a limited key: all roles of its user, where `roles` are those that the key has in full. */
  readonly userRoles?: readonly string[] | undefined
  /** All that the caller may do; what no grant allows is refused. */
  readonly grants: readonly Grant[]
  /**
   * Set for an API key that expires: no credential that it creates may outlive it. Not set for a token, whose user can log in
   * again.
   */
  readonly keyExpiresAt?: number | undefined
  /** Tells credentials apart in a log without telling what they are. */
  readonly fingerprint: string
  /** When the credential ends, in milliseconds since 1970; nothing may remember the principal for longer. */
  readonly expiresAt?: number | undefined
  /**
   * `anonymous`: nobody in particular, who is asked for credentials where others are refused. `scoped`: a token for
   * certain repositories, whose owner may fetch one for others. Without it: somebody with credentials of his own.
   */
  readonly kind?: 'anonymous' | 'scoped'
  /** The identity service could not be asked again: good for pulling and pushing, not for what cannot be taken back. */
  readonly isUnconfirmed?: true
  /** What the catalog shows, where that is not simply what may be pulled. */
  readonly catalog?: 'all' | 'none' | readonly RepositoryPattern[]
}

/** Where a question about a credential comes from. */
export interface Origin {
  /** Trouble that one origin meets is no sign that the identity service is down for all. */
  readonly name: string
  /** The client's address, if it is known: a service elsewhere can then limit each client by itself. */
  readonly address?: string | undefined
}

/** Knows who stands behind a credential. */
export interface Identity {
  /**
   * The principal, or `undefined` when the credential is wrong, expired or revoked: only that is a 401. Rejects with
   * `Unavailable` when nobody can tell right now, so that a caller is never sent away with "wrong password" because a
   * service is down.
   */
  authenticate(credential: Credential, origin?: Origin): Promise<Principal | undefined>
}

/** An identity that remembers whom it met lately. */
export interface CachingIdentity extends Identity {
  /** At once and without asking anybody; `undefined` says nothing about the credential. */
  findCached(credential: Credential): Principal | undefined
  /** Whether the credential is one of our own that nobody can guess. To judge it takes a signature or one indexed row. */
  isUnguessable(credential: Credential): boolean
  /** Asks anew about everyone: users or keys have changed. */
  clear(): void
}
