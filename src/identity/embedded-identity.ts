import type { Clock } from '../ports/clock.ts'
import type { Credential, Identity, Principal } from '../ports/identity.ts'
import type { User, UserStore } from '../ports/user-store.ts'
import { fingerprintOf, hashApiKey } from './api-keys.ts'
import { isPassword } from './passwords.ts'
import { type RoleMap, rightsOf } from './rights.ts'
import type { Tokens } from './tokens.ts'

type Needs = {
  readonly users: Pick<UserStore, 'findUser' | 'findApiKey'>
  readonly clock: Pick<Clock, 'now'>
  readonly tokens: Tokens
  readonly roles: RoleMap
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
      roles: user.roles,
      rights: rightsOf(user.roles, this.#needs.roles),
      fingerprint: fingerprintOf(credential.secret),
      expiresAt,
    }
  }

  async #byApiKey(secret: string): Promise<{ user: User; expiresAt: number | undefined } | undefined> {
    const key = await this.#needs.users.findApiKey(hashApiKey(secret))
    if (key === undefined) return undefined
    if (key.expiresAt !== undefined && key.expiresAt <= this.#needs.clock.now()) return undefined
    return { user: key.user, expiresAt: key.expiresAt }
  }

  /** The user is read anew: one who was disabled or lost a role does not keep it until the token ends. */
  async #byToken(token: string): Promise<{ user: User; expiresAt: number } | undefined> {
    const claims = await this.#needs.tokens.verify(token, this.#needs.clock.now())
    const user = claims && (await this.#needs.users.findUser(claims.userName))
    return claims && user && { user, expiresAt: claims.expiresAt }
  }
}

/** The user with this name and password, at the same cost whether the name or the password is wrong. */
export async function findByPassword(
  users: Pick<UserStore, 'findUser'>,
  name: string,
  password: string,
): Promise<User | undefined> {
  const user = await users.findUser(name)
  const matches = await isPassword(password, user?.passwordHash)
  return matches && user !== undefined && !user.isDisabled ? user : undefined
}
