import { fingerprintOf } from '../lib/hashing.ts'
import { ownAlgorithms, readJwtType, signJwt } from '../lib/jwt.ts'
import { isRepositoryName } from '../oci/names.ts'
import { parseRepositoryPattern, patternOf, type RepositoryPattern } from '../oci/repository-pattern.ts'
import type { Clock } from '../ports/clock.ts'
import type { Credential, Grant, Identity, Principal, Right } from '../ports/identity.ts'
import type { KeyRing } from './key-ring.ts'
import { tokenIssuer } from './tokens.ts'

/** The rights of a scoped token over one repository. Empty if its owner may have none of the requested rights. */
export interface ScopedGrant {
  readonly repository: string
  readonly rights: readonly Right[]
}

export interface ScopedToken {
  readonly principal: Pick<Principal, 'account' | 'subject' | 'kind'>
  readonly access: readonly ScopedGrant[]
  /** The repositories that the token shows in the catalog. Undefined: no catalog. */
  readonly catalog: 'all' | readonly RepositoryPattern[] | undefined
}

const audience = 'berth-registry'
const type = 'berth-scoped+jwt'

export function isScopedToken({ kind, secret }: Credential): boolean {
  return kind === 'bearer' && readJwtType(secret) === type
}

/** Of the 8 KiB of a token (`lib/jwt.ts`), the part that claims of variable length may use. */
const claimsBytesMax = 4_096

const tokenRights: ReadonlySet<string> = new Set<Right>(['pull', 'push', 'delete'])

/**
 * The short-lived tokens of bearer mode. A token contains the rights of its owner over the requested repositories, so a
 * request needs no look-up. Rights that the owner loses meanwhile end when the token expires.
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

  /** Undefined for anything but a valid scoped token. */
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
    const shownCatalog = readCatalog(catalog)
    return {
      account: scope,
      subject: sub,
      roles: [],
      // A token with a catalog needs a right to list it, also if it names no repository.
      grants: [...readAccess(access), ...(shownCatalog === undefined ? [] : [catalogGrant])],
      fingerprint: fingerprintOf(token),
      expiresAt: exp * 1000,
      kind: anonymous === true ? 'anonymous' : 'scoped',
      catalog: shownCatalog ?? 'none',
    }
  }
}

/**
 * Removes what does not fit into a token that a header can carry. A token may have fewer rights than requested. A
 * client could not tell a part of the catalog from the whole, so the catalog is kept as a whole or removed.
 */
export function trimToken({ principal, access, catalog }: ScopedToken): ScopedToken {
  let freeBytes = claimsBytesMax
  const fits = (claim: unknown): boolean => {
    const bytes = JSON.stringify(claim).length + 1
    if (bytes > freeBytes) return false
    freeBytes -= bytes
    return true
  }
  const fitting = access.filter((grant) => fits(toClaim(grant)))
  return { principal, access: fitting, catalog: catalog !== undefined && fits(catalog) ? catalog : undefined }
}

/** The format of Docker's token specification. */
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
