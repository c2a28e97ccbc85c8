import { fingerprintOf } from '../lib/hashing.ts'
import type { ApiKeys, FoundKey, KeyLimits } from '../ports/api-keys.ts'
import type { Clock } from '../ports/clock.ts'
import type { Credential, Identity, Principal } from '../ports/identity.ts'
import type { User, Users } from '../ports/users.ts'
import type { KeyUseRecorder } from './api-keys.ts'
import { hashApiKey, isGeneratedKey } from './api-keys.ts'
import { PasswordLogins } from './password-logins.ts'
import { grantOf, type RoleMap, rightsOf } from './rights.ts'
import type { Tokens } from './tokens.ts'

type Needs = {
  readonly users: Pick<Users, 'find'>
  readonly apiKeys: Pick<ApiKeys, 'find'>
  readonly uses: KeyUseRecorder
  readonly clock: Pick<Clock, 'now'>
  readonly tokens: Tokens
  readonly roles: RoleMap
}

interface Found {
  readonly user: User
  readonly expiresAt: number | undefined
  readonly limits: KeyLimits | undefined
  /** Where nothing that is derived from the secret may be shown: a password can be guessed from its fingerprint. */
  readonly fingerprint?: string
}

/** The identity service inside Berth: API keys and tokens of its own users. */
export class EmbeddedIdentity implements Identity {
  readonly #needs: Needs
  readonly #logins: PasswordLogins

  constructor(needs: Needs) {
    this.#needs = needs
    this.#logins = new PasswordLogins(needs.users, needs.clock)
  }

  async authenticate(credential: Credential): Promise<Principal | undefined> {
    const found = await this.#find(credential)
    if (found === undefined || found.user.isDisabled) return undefined
    const { user, expiresAt } = found
    return {
      account: user.account,
      subject: user.name,
      ...this.#mayDo(found),
      fingerprint: found.fingerprint ?? fingerprintOf(credential.secret),
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

  #find(credential: Credential): Promise<Found | undefined> {
    if (credential.kind === 'api-key') return this.#byApiKey(credential.secret)
    if (credential.kind === 'bearer') return this.#byToken(credential.secret)
    return this.#byLogin(credential.userName, credential.secret)
  }

  /** The secret is one of the user's keys, or the password. A key of another user is neither. */
  async #byLogin(userName: string, secret: string): Promise<Found | undefined> {
    const key = await this.#needs.apiKeys.find(hashApiKey(secret))
    if (key !== undefined) return key.user.name === userName ? this.#byFoundKey(key) : undefined
    if (isGeneratedKey(secret)) return undefined
    const user = await this.#logins.find(userName, secret)
    if (user === undefined) return undefined
    return { user, expiresAt: undefined, limits: undefined, fingerprint: fingerprintOf(`login:${user.name}`) }
  }

  async #byApiKey(secret: string): Promise<Found | undefined> {
    const found = await this.#needs.apiKeys.find(hashApiKey(secret))
    return found && this.#byFoundKey(found)
  }

  #byFoundKey({ key, user }: FoundKey): Found | undefined {
    if (key.expiresAt !== undefined && key.expiresAt <= this.#needs.clock.now()) return undefined
    this.#needs.uses.add(key.id)
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
