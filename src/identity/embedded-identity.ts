import { fingerprintOf } from '../lib/hashing.ts'
import type { ApiKeys, FoundKey, KeyLimits } from '../ports/api-keys.ts'
import type { Clock } from '../ports/clock.ts'
import type { Credential, Identity, Principal } from '../ports/identity.ts'
import type { User, Users } from '../ports/users.ts'
import { hashApiKey, isGeneratedKey } from './api-key-secrets.ts'
import type { KeyUseRecorder } from './api-keys.ts'
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

interface Authenticated {
  readonly user: User
  readonly expiresAt: number | undefined
  readonly limits: KeyLimits | undefined
  /** Set for a password, which could be guessed from a fingerprint of the secret. */
  readonly fingerprint?: string
  readonly keyName?: string
}

/** The embedded identity service: API keys, passwords and tokens of its users. */
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
      ...this.#rightsOf(found),
      fingerprint: found.fingerprint ?? fingerprintOf(credential.secret),
      expiresAt,
      keyExpiresAt: found.limits?.expiresAt,
      keyName: found.keyName,
    }
  }

  /**
   * With a limited key, `roles` are only those whose rights the key has, for clients that look at roles and not at
   * rights.
   */
  #rightsOf({ user, limits }: Authenticated): Pick<Principal, 'roles' | 'userRoles' | 'grants'> {
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

  #find(credential: Credential): Promise<Authenticated | undefined> {
    if (credential.kind === 'api-key') return this.#byApiKey(credential.secret)
    if (credential.kind === 'bearer') return this.#byToken(credential.secret)
    return this.#byLogin(credential.userName, credential.secret)
  }

  /** The secret is an API key of this user or the user's password. A key of another user is refused. */
  async #byLogin(userName: string, secret: string): Promise<Authenticated | undefined> {
    const key = await this.#needs.apiKeys.find(hashApiKey(secret))
    if (key !== undefined) return key.user.name === userName ? this.#byFoundKey(key) : undefined
    if (isGeneratedKey(secret)) return undefined
    const user = await this.#logins.find(userName, secret)
    if (user === undefined) return undefined
    return { user, expiresAt: undefined, limits: undefined, fingerprint: fingerprintOf(`login:${user.name}`) }
  }

  async #byApiKey(secret: string): Promise<Authenticated | undefined> {
    const found = await this.#needs.apiKeys.find(hashApiKey(secret))
    return found && this.#byFoundKey(found)
  }

  #byFoundKey({ key, user }: FoundKey): Authenticated | undefined {
    if (key.expiresAt !== undefined && key.expiresAt <= this.#needs.clock.now()) return undefined
    this.#needs.uses.add(key.id)
    return { user, expiresAt: key.expiresAt, limits: key, keyName: key.name }
  }

  /** Reads the user's row, so that disabling the user and changing roles take effect before the token expires. */
  async #byToken(token: string): Promise<Authenticated | undefined> {
    const claims = await this.#needs.tokens.verify(token)
    const user = claims && (await this.#needs.users.find(claims.userName))
    if (claims === undefined || user === undefined || claims.epoch !== user.tokenEpoch) return undefined
    return { user, expiresAt: claims.expiresAt, limits: undefined }
  }
}
