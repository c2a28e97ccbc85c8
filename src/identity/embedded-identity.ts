import { fingerprintOf } from '../lib/fingerprint.ts'
import type { ApiKeys, KeyLimits } from '../ports/api-keys.ts'
import type { Clock } from '../ports/clock.ts'
import type { Credential, Identity, Principal } from '../ports/identity.ts'
import type { User, Users } from '../ports/users.ts'
import { hashApiKey } from './api-keys.ts'
import type { KeyUses } from './key-uses.ts'
import { grantOf, type RoleMap, rightsOf } from './rights.ts'
import type { Tokens } from './tokens.ts'

type Needs = {
  readonly users: Pick<Users, 'find'>
  readonly apiKeys: Pick<ApiKeys, 'find'>
  readonly uses: KeyUses
  readonly clock: Pick<Clock, 'now'>
  readonly tokens: Tokens
  readonly roles: RoleMap
}

interface Found {
  readonly user: User
  readonly expiresAt: number | undefined
  readonly limits: KeyLimits | undefined
}

/** The identity service inside Berth: API keys and tokens of its own users. */
export class EmbeddedIdentity implements Identity {
  readonly #needs: Needs

  constructor(needs: Needs) {
    this.#needs = needs
  }

  async authenticate(credential: Credential): Promise<Principal | undefined> {
    const found =
      credential.kind === 'api-key' ? await this.#byApiKey(credential.secret) : await this.#byToken(credential.secret)
    if (found === undefined || found.user.isDisabled) return undefined
    const { user, expiresAt } = found
    return {
      account: user.account,
      subject: user.name,
      ...this.#mayDo(found),
      fingerprint: fingerprintOf(credential.secret),
      expiresAt,
      keyExpiresAt: found.limits?.expiresAt,
    }
  }

  /** Whoever asks about a limited key must not take it for all that its user is, though he knew of roles alone. */
  #mayDo({ user, limits }: Found): Pick<Principal, 'roles' | 'userRoles' | 'grants'> {
    const map = this.#needs.roles
    const rights = rightsOf(user.roles, map)
    if (limits === undefined || (limits.rights ?? limits.repositories) === undefined) {
      return { roles: user.roles, grants: [{ rights }] }
    }
    const grant = grantOf(rights, limits)
    const isWhole = (role: string) => map.has(role) && rightsOf([role], map).isSubsetOf(grant.rights)
    const roles = limits.repositories === undefined ? user.roles.filter(isWhole) : []
    return { roles, userRoles: user.roles, grants: [grant] }
  }

  async #byApiKey(secret: string): Promise<Found | undefined> {
    const found = await this.#needs.apiKeys.find(hashApiKey(secret))
    if (found === undefined) return undefined
    const { key, user } = found
    if (key.expiresAt !== undefined && key.expiresAt <= this.#needs.clock.now()) return undefined
    this.#needs.uses.note(key.id)
    return { user, expiresAt: key.expiresAt, limits: key }
  }

  /** The user is read anew: one who was disabled or lost a role does not keep it until the token ends. */
  async #byToken(token: string): Promise<Found | undefined> {
    const claims = await this.#needs.tokens.verify(token)
    const user = claims && (await this.#needs.users.find(claims.userName))
    if (claims === undefined || user === undefined || claims.epoch !== user.tokenEpoch) return undefined
    return { user, expiresAt: claims.expiresAt, limits: undefined }
  }
}
