import type { RepositoryName } from '../oci/names.ts'

/** What a caller may be allowed to do. `operate`: enable, disable, statistics, administration. */
export type Right = 'pull' | 'push' | 'delete' | 'operate'

/** What a caller presents, whatever carried it. The secret inside must never reach a log, a header or a row. */
export type Credential =
  | { readonly kind: 'api-key'; readonly secret: string }
  | { readonly kind: 'bearer'; readonly secret: string }

/** Who is calling now. */
export interface Principal {
  /** The tenant: everything that is stored belongs to one account, and only its principals can see it. */
  readonly account: string
  /** Stable and unique within the account: uploads are bound to it. */
  readonly subject: string
  readonly roles: readonly string[]
  readonly rights: ReadonlySet<Right>
  /** Tells credentials apart in a log without telling what they are. */
  readonly fingerprint: string
  /** When the credential ends, in milliseconds since 1970; nothing may remember the principal for longer. */
  readonly expiresAt?: number | undefined
  /** Limits an API key to some repositories; without it, all of the account's. */
  readonly mayReach?: ((repository: RepositoryName) => boolean) | undefined
}

/** Knows who stands behind a credential. */
export interface Identity {
  /**
   * The principal, or `undefined` when the credential is wrong, expired or revoked: only that is a 401. Rejects with
   * `Unavailable` when nobody can tell right now, so that a caller is never sent away with "wrong password" because a
   * service is down.
   */
  authenticate(credential: Credential): Promise<Principal | undefined>
}
