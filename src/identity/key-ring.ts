import { generateSigningJwk, type Jwk, JwtKeys, type JwtRules, toPublicJwk, type Verdict } from '../lib/jwt.ts'
import type { Clock } from '../ports/clock.ts'
import type { SigningKey, SigningKeys } from '../ports/signing-keys.ts'

/** A new key is published this long before it signs, so that caches of the public keys have it by then. */
export const publishAheadMs = 15 * 60_000

/** How long clients may cache the public keys. */
export const keySetMaxAgeSeconds = 300

/** A token lasts for 24 hours. The rest allows for clocks that differ by up to an hour. */
const overlapMs = 25 * 3_600_000

/** Another process may add and remove keys, so they are read again when they are older than this. */
const reloadAfterMs = 10_000

/**
 * Anonymous callers can send tokens with unknown key ids. Such tokens cause at most one read of the keys in this time.
 */
const unknownKeyReloadMs = 1_000

/**
 * The keys that sign tokens. One key signs at a time. Older keys are accepted until their last tokens have expired. The
 * next key is published before it signs. The ages of the keys decide this, so all processes that share the keys agree.
 */
export class KeyRing {
  readonly #store: SigningKeys
  readonly #clock: Pick<Clock, 'now' | 'freshId'>
  readonly #rotationMs: number
  #keys: readonly SigningKey[] = []
  #verifier = new JwtKeys([])
  #loadedAt = Number.NEGATIVE_INFINITY
  #unknownKeyReadAt = Number.NEGATIVE_INFINITY
  #reads = 0
  #newestRead = 0
  #running: Promise<void> | undefined

  private constructor(store: SigningKeys, clock: Pick<Clock, 'now' | 'freshId'>, rotationMs: number) {
    this.#store = store
    this.#clock = clock
    this.#rotationMs = rotationMs
  }

  /** `rotationMs` 0: no automatic rotation. */
  static async open(store: SigningKeys, clock: Pick<Clock, 'now' | 'freshId'>, rotationMs: number): Promise<KeyRing> {
    const ring = new KeyRing(store, clock, rotationMs)
    await ring.reload()
    if (ring.#keys.length === 0) await ring.rotate()
    return ring
  }

  /** The newest key that has been published for long enough. The first key need not wait. */
  signing(): SigningKey {
    const since = this.#clock.now() - publishAheadMs
    const key = this.#keys.findLast(({ createdAt }) => createdAt <= since) ?? this.#keys[0]
    if (key === undefined) throw new Error('the key ring is empty')
    return key
  }

  /** As `signing`, after reading the keys again: a key that another process has removed must not sign. */
  async signer(): Promise<SigningKey> {
    await this.#refresh(reloadAfterMs)
    // All keys were removed from the store. That ends all tokens, but new tokens must be possible.
    if (this.#keys.length === 0) await this.rotate()
    return this.signing()
  }

  /** Verifies a token. Another process may just have created the key that it names. */
  async verify(token: string, rules: JwtRules): Promise<Verdict> {
    await this.#refresh(reloadAfterMs)
    const verdict = await this.#verifier.verify(token, rules)
    const isUnknown = 'fault' in verdict && verdict.fault === 'unknown-key'
    return isUnknown && (await this.#reloadForUnknownKey()) ? this.#verifier.verify(token, rules) : verdict
  }

  /** Returns whether the keys were read. Counts only reads of its own: a key may be newer than the last other read. */
  async #reloadForUnknownKey(): Promise<boolean> {
    if (this.#running === undefined) {
      const now = this.#clock.now()
      if (Math.abs(now - this.#unknownKeyReadAt) < unknownKeyReloadMs) return false
      this.#unknownKeyReadAt = now
    }
    await this.#reloadOnce()
    return true
  }

  /** As new as possible, because clients cache them for minutes. */
  async publicKeys(): Promise<readonly Jwk[]> {
    await this.#refresh(unknownKeyReloadMs)
    return this.#publicKeys()
  }

  /** All keys, the oldest first, without the private part. */
  list(): readonly Pick<SigningKey, 'kid' | 'createdAt'>[] {
    return this.#keys.map(({ kid, createdAt }) => ({ kid, createdAt }))
  }

  #publicKeys(): readonly Jwk[] {
    return this.#keys.map(({ kid, privateJwk }) => toPublicJwk(privateJwk, kid))
  }

  /** Reads the keys again if they were read longer ago than this. Returns whether it did. */
  async #refresh(afterMs: number): Promise<boolean> {
    // The absolute value, because the clock may have been set back.
    if (Math.abs(this.#clock.now() - this.#loadedAt) < afterMs) return false
    await this.#reloadOnce()
    return true
  }

  /** Requests that need the keys at the same time share one read. */
  #reloadOnce(): Promise<void> {
    this.#running ??= this.reload().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async reload(): Promise<void> {
    this.#reads += 1
    const read = this.#reads
    const at = this.#clock.now()
    const keys = await this.#store.list()
    // A read that began later has ended earlier, and its result is newer.
    if (read < this.#newestRead) return
    this.#keys = keys
    this.#verifier = new JwtKeys(this.#publicKeys())
    this.#loadedAt = at
    this.#newestRead = read
  }

  /** Creates the next key. It signs after `publishAheadMs`. */
  async rotate(): Promise<SigningKey> {
    const key = {
      kid: this.#clock.freshId(),
      createdAt: this.#clock.now(),
      privateJwk: await generateSigningJwk(),
    }
    await this.#store.add(key)
    await this.reload()
    return key
  }

  /**
   * Removes all keys, which ends all tokens, and creates one that signs at once. For the case that a key was stolen.
   */
  async replaceAll(): Promise<SigningKey> {
    const old = await this.#store.list()
    const key = await this.rotate()
    for (const { kid } of old) await this.#store.remove(kid)
    await this.reload()
    return key
  }

  /**
   * Creates the next key when the rotation is due, and removes keys whose tokens have all expired. A key stops signing
   * when the next one starts. To be called from time to time.
   */
  async tend(): Promise<void> {
    await this.reload()
    const now = this.#clock.now()
    // The absolute value, because a wrong clock may have dated a key years ahead, and the rotation must not wait for
    // that.
    const isNew = ({ createdAt }: SigningKey) => Math.abs(now - createdAt) < this.#rotationMs
    if (this.#keys.length === 0 || (this.#rotationMs > 0 && !this.#keys.some(isNew))) await this.rotate()
    const expired = this.#keys.filter((_, index) => {
      const next = this.#keys[index + 1]
      return next !== undefined && now - next.createdAt > publishAheadMs + overlapMs
    })
    for (const { kid } of expired) await this.#store.remove(kid)
    if (expired.length > 0) await this.reload()
  }
}
