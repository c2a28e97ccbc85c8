import { fingerprintOf } from '../lib/hashing.ts'
import { ownAlgorithms, readJwtType, signJwt } from '../lib/jwt.ts'
import { isRepositoryName } from '../oci/names.ts'
import { parseRepositoryPattern, patternOf, type RepositoryPattern } from '../oci/repository-pattern.ts'
import type { Clock } from '../ports/clock.ts'
import type { Credential, Grant, Identity, Principal, Right } from '../ports/identity.ts'
import type { KeyRing } from './key-ring.ts'
import { tokenIssuer } from './tokens.ts'

/** What a scoped token is for: some rights in one repository; none, where its owner may not have what he asked for. */
export interface ScopedGrant {
  readonly repository: string
  readonly rights: readonly Right[]
}

export interface ScopedToken {
  readonly principal: Pick<Principal, 'account' | 'subject' | 'kind'>
  readonly access: readonly ScopedGrant[]
  /** Set where the token shows the catalog: which repositories of it. */
  readonly catalog: 'all' | readonly RepositoryPattern[] | undefined
}

const audience = 'berth-registry'
const type = 'berth-scoped+jwt'

export function isScopedToken({ kind, secret }: Credential): boolean {
  return kind === 'bearer' && readJwtType(secret) === type
}

/** Of the 8 KiB that a token may have (`lib/jwt.ts`), what the claims of fixed length leave. */
const roomBytes = 4_096

const tokenRights: ReadonlySet<string> = new Set<Right>(['pull', 'push', 'delete'])

/**
 * The short-lived tokens of bearer mode: each holds what its owner may do in the repositories that he named, so that no
 * request asks anybody. What was taken from the owner meanwhile ends with the token.
 */
export class ScopedTokens implements Identity {
  readonly #keys: KeyRing
  readonly #clock: Pick<Clock, 'now'>
  readonly lifetimeMs: number

  constructor(keys: KeyRing, clock: Pick<Clock, 'now'>, lifetimeMs: number) {
    this.#keys = keys
    this.#clock = clock
    this.lifetimeMs = lifetimeMs
  }

  async issue({ principal, access, catalog }: ScopedToken, expiresAt: number): Promise<string> {
    const claims = {
      iss: tokenIssuer,
      aud: audience,
      sub: principal.subject,
      scope: principal.account,
      anonymous: principal.kind === 'anonymous',
      access: access.map(toClaim),
      ...(catalog === undefined ? {} : { catalog }),
      iat: Math.floor(this.#clock.now() / 1000),
      exp: Math.floor(expiresAt / 1000),
    }
    return signJwt(claims, { ...(await this.#keys.signer()), type })
  }

  /** Undefined for anything but a good token of this kind. */
  async authenticate({ secret: token }: Credential): Promise<Principal | undefined> {
    const verdict = await this.#keys.verify(token, {
      algorithms: ownAlgorithms,
      issuer: tokenIssuer,
      audience,
      type,
      nowMs: this.#clock.now(),
    })
    if (!('claims' in verdict)) return undefined
    const { sub, scope, exp, anonymous, access, catalog } = verdict.claims
    if (sub === undefined || exp === undefined || typeof scope !== 'string') return undefined
    const listed = readCatalog(catalog)
    return {
      account: scope,
      subject: sub,
      roles: [],
      // Who may see the catalog has a right to it, whatever the token is for besides.
      grants: [...readAccess(access), ...(listed === undefined ? [] : [catalogGrant])],
      fingerprint: fingerprintOf(token),
      expiresAt: exp * 1000,
      kind: anonymous === true ? 'anonymous' : 'scoped',
      catalog: listed ?? 'none',
    }
  }
}

/**
 * What of it a token can hold that a header can carry. Less than was asked is no fault; a token that is too long to be used
 * would be. A part of the catalog would pass for the whole, so it is there as a whole or not at all.
 */
export function trimToken({ principal, access, catalog }: ScopedToken): ScopedToken {
  let room = roomBytes
  const takes = (claim: unknown): boolean => {
    const bytes = JSON.stringify(claim).length + 1
    const isFitting = bytes <= room
    if (isFitting) room -= bytes
    return isFitting
  }
  const held = access.filter((grant) => takes(toClaim(grant)))
  return { principal, access: held, catalog: catalog !== undefined && takes(catalog) ? catalog : undefined }
}

/** As Docker's token specification has it. */
function toClaim({ repository, rights }: ScopedGrant) {
  return { type: 'repository', name: repository, actions: [...rights] }
}

const catalogGrant: Grant = { rights: new Set<Right>(['pull']), repositories: [] }

function readAccess(access: unknown): Grant[] {
  if (!Array.isArray(access)) return []
  return access.flatMap((entry: { name?: unknown; actions?: unknown }) => {
    const { name, actions } = entry
    if (typeof name !== 'string' || !isRepositoryName(name) || !Array.isArray(actions)) return []
    return [{ rights: new Set(actions.filter(isTokenRight)), repositories: [patternOf(name)] }]
  })
}

function isTokenRight(action: unknown): action is Right {
  return typeof action === 'string' && tokenRights.has(action)
}

function readCatalog(catalog: unknown): 'all' | readonly RepositoryPattern[] | undefined {
  if (catalog === 'all') return 'all'
  if (!Array.isArray(catalog)) return undefined
  return catalog.flatMap((text) => (typeof text === 'string' ? (parseRepositoryPattern(text) ?? []) : []))
}
