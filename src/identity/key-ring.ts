import { generateSigningJwk, type Jwk, JwtKeys, type JwtRules, toPublicJwk, type Verdict } from '../lib/jwt.ts'
import type { Clock } from '../ports/clock.ts'
import type { SigningKey, SigningKeys } from '../ports/signing-keys.ts'

/** A new key is published this long before it signs, so that who keeps a copy of the public keys has it by then. */
export const publishAheadMs = 15 * 60_000

/** Published keys may be kept by others for this long. */
export const keySetMaxAgeSeconds = 300

/** A token lives for 24 hours. The rest allows for processes whose clocks differ by up to an hour. */
const overlapMs = 25 * 3_600_000

/** Another process may add and remove keys: what we know of them is no older than this when it counts. */
const reloadAfterMs = 10_000

/** Anybody can send a token of a key that there never was: that makes us look for it no more often than this. */
const lookAgainAfterMs = 1_000

/**
 * The keys that sign tokens. One signs at a time; those before it still count until all that they signed is over, and the
 * one after it is published before its turn. Which is which follows from their ages, so processes that share the keys agree.
 */
export class KeyRing {
  readonly #keeper: SigningKeys
  readonly #clock: Pick<Clock, 'now' | 'freshId'>
  readonly #rotationMs: number
  #keys: readonly SigningKey[] = []
  #verifier = new JwtKeys([])
  #loadedAt = Number.NEGATIVE_INFINITY
  #looks = 0
  #lastLook = 0
  #running: Promise<void> | undefined

  private constructor(keeper: SigningKeys, clock: Pick<Clock, 'now' | 'freshId'>, rotationMs: number) {
    this.#keeper = keeper
    this.#clock = clock
    this.#rotationMs = rotationMs
  }

  /** `rotationMs` 0: keys change only when somebody says so. */
  static async open(keeper: SigningKeys, clock: Pick<Clock, 'now' | 'freshId'>, rotationMs: number): Promise<KeyRing> {
    const ring = new KeyRing(keeper, clock, rotationMs)
    await ring.reload()
    if (ring.#keys.length === 0) await ring.rotate()
    return ring
  }

  /** The newest key whose turn has come; the very first need not wait. */
  signing(): SigningKey {
    const since = this.#clock.now() - publishAheadMs
    const key = this.#keys.findLast(({ createdAt }) => createdAt <= since) ?? this.#keys[0]
    if (key === undefined) throw new Error('the key ring is empty')
    return key
  }

  /** The key to sign with now. What was signed with one that another process has removed would be good for nothing. */
  async signer(): Promise<SigningKey> {
    await this.#refresh(reloadAfterMs)
    // Somebody emptied the keeper: that ended all tokens, and must not end all logins.
    if (this.#keys.length === 0) await this.rotate()
    return this.signing()
  }

  /** Checks a token. The key that it names may be one that another process has just made. */
  async verify(token: string, rules: JwtRules): Promise<Verdict> {
    await this.#refresh(reloadAfterMs)
    const verdict = await this.#verifier.verify(token, rules)
    const isUnknown = 'fault' in verdict && verdict.fault === 'unknown-key'
    return isUnknown && (await this.#refresh(lookAgainAfterMs)) ? this.#verifier.verify(token, rules) : verdict
  }

  /** Who gets these keeps them for minutes, so they are as new as can be. */
  async publicKeys(): Promise<readonly Jwk[]> {
    await this.#refresh(lookAgainAfterMs)
    return this.#publicKeys()
  }

  /** All keys and their ages, oldest first, without what is secret. */
  list(): readonly Pick<SigningKey, 'kid' | 'createdAt'>[] {
    return this.#keys.map(({ kid, createdAt }) => ({ kid, createdAt }))
  }

  #publicKeys(): readonly Jwk[] {
    return this.#keys.map(({ kid, privateJwk }) => toPublicJwk(privateJwk, kid))
  }

  /** True when what we know was older than that and is not any more. */
  async #refresh(afterMs: number): Promise<boolean> {
    // Either side of it: a clock can be set back.
    if (Math.abs(this.#clock.now() - this.#loadedAt) < afterMs) return false
    this.#running ??= this.reload().finally(() => {
      this.#running = undefined
    })
    await this.#running
    return true
  }

  async reload(): Promise<void> {
    this.#looks += 1
    const look = this.#looks
    const at = this.#clock.now()
    const keys = await this.#keeper.list()
    // Another look that began later may have ended earlier: it knows more.
    if (look < this.#lastLook) return
    this.#keys = keys
    this.#verifier = new JwtKeys(this.#publicKeys())
    this.#loadedAt = at
    this.#lastLook = look
  }

  /** Makes the next key. It signs once everybody can know it. */
  async rotate(): Promise<SigningKey> {
    const key = {
      kid: this.#clock.freshId(),
      createdAt: this.#clock.now(),
      privateJwk: await generateSigningJwk(),
    }
    await this.#keeper.add(key)
    await this.reload()
    return key
  }

  /** Ends every token that was ever issued: all keys go, and one new one signs at once. For when a key was stolen. */
  async replaceAll(): Promise<SigningKey> {
    const old = await this.#keeper.list()
    const key = await this.rotate()
    for (const { kid } of old) await this.#keeper.remove(kid)
    await this.reload()
    return key
  }

  /**
   * To be called now and then: makes the next key when it is time, and drops keys whose tokens are all over. A key stops
   * signing when the turn of the next one comes.
   */
  async tend(): Promise<void> {
    await this.reload()
    const now = this.#clock.now()
    // Either side of now: a key that a wrong clock has dated years ahead must not put the next one off until then.
    const isNew = ({ createdAt }: SigningKey) => Math.abs(now - createdAt) < this.#rotationMs
    if (this.#keys.length === 0 || (this.#rotationMs > 0 && !this.#keys.some(isNew))) await this.rotate()
    const over = this.#keys.filter((_, index) => {
      const next = this.#keys[index + 1]
      return next !== undefined && now - next.createdAt > publishAheadMs + overlapMs
    })
    for (const { kid } of over) await this.#keeper.remove(kid)
    if (over.length > 0) await this.reload()
  }
}
