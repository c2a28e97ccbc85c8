import { LRUCache } from 'lru-cache'
import { SecretHasher } from '../lib/hashing.ts'
import { NoSlot } from '../lib/slots.ts'
import { Unavailable } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { User, Users } from '../ports/users.ts'
import { isUserName } from './names.ts'
import { findByPassword } from './users.ts'

interface Proof {
  /** The stored hash that the password matched. */
  readonly hash: string
  readonly until: number
}

const proofsMax = 10_000
const proofMs = 10 * 60_000

/**
 * Checks user names and passwords, which clients after `docker login` send with every request. Argon2 is slow on
 * purpose, so a correct password is cached together with the stored hash that it matched. The user's row is read each
 * time, so this cache never hides a new password, a disabled user or a changed role. `CachedIdentity`, which calls this
 * class, delays such changes by at most `identity.cache`. The cache contains keyed hashes, no passwords.
 */
export class PasswordLogins {
  readonly #users: Pick<Users, 'find'>
  readonly #clock: Pick<Clock, 'now'>
  readonly #hasher = new SecretHasher()
  readonly #proofs = new LRUCache<string, Proof>({ max: proofsMax })

  constructor(users: Pick<Users, 'find'>, clock: Pick<Clock, 'now'>) {
    this.#users = users
    this.#clock = clock
  }

  async find(name: string, password: string): Promise<User | undefined> {
    const key = this.#hasher.hash(`${name}\n${password}`)
    const proof = this.#proofs.get(key)
    if (proof !== undefined && proof.until > this.#clock.now() && isUserName(name)) {
      const user = await this.#users.find(name)
      if (user?.passwordHash === proof.hash) return user.isDisabled ? undefined : user
    }
    const user = await findByPassword({ users: this.#users }, name, password).catch(tellFull)
    if (user?.passwordHash === undefined) return undefined
    this.#proofs.set(key, { hash: user.passwordHash, until: this.#clock.now() + proofMs })
    return user
  }
}

/** Too many passwords are being checked. The caller may try again. */
export function tellFull(error: unknown): never {
  throw error instanceof NoSlot ? new Unavailable('login-slots', { cause: error }) : error
}
