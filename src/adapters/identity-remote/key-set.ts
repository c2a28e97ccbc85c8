import { type Claims, JwtKeys, type JwtRules } from '../../lib/jwt.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { Clock } from '../../ports/clock.ts'
import { getJson, ServiceFault } from './get-json.ts'

const timeoutMs = 5_000
const maxAgeMs = 10 * 60_000

/** Made-up key names must not make us ask for each of them. */
const unknownKeyPauseMs = 30_000
const failurePauseMs = 5_000

/**
 * The public keys of a service at an address (JWKS). A set that is too old is fetched anew before it is used again; while
 * that fails, the old one counts, since the service's silence is no reason to turn everybody away.
 */
export class KeySet {
  readonly #url: string
  readonly #clock: Pick<Clock, 'now'>
  #keys: JwtKeys | undefined
  #fetchedAt = 0
  #fault: { readonly at: number; readonly error: Unavailable } | undefined
  #running: Promise<JwtKeys> | undefined

  constructor(url: string, clock: Pick<Clock, 'now'>) {
    this.#url = url
    this.#clock = clock
  }

  /** The claims of a good token; rejects with `Unavailable` when the keys that would tell cannot be had. */
  async verify(token: string, rules: Omit<JwtRules, 'nowMs'>): Promise<Claims | undefined> {
    const all = { ...rules, nowMs: this.#clock.now() }
    const verdict = await (await this.#current()).verify(token, all)
    if ('claims' in verdict) return verdict.claims
    if (verdict.fault !== 'unknown-key') return undefined
    const newer = await this.#newer()
    const second = await newer?.verify(token, all)
    return second !== undefined && 'claims' in second ? second.claims : undefined
  }

  async #current(): Promise<JwtKeys> {
    const keys = this.#keys
    if (keys === undefined) return this.#fetchUnlessPaused()
    if (this.#clock.now() < this.#fetchedAt + maxAgeMs) return keys
    const fetched = this.#fetchUnlessPaused().catch(() => keys)
    // Nobody waits again for a service that did not answer lately.
    return this.#fault === undefined ? fetched : keys
  }

  /** The keys may have changed; undefined when that was looked at just now. */
  async #newer(): Promise<JwtKeys | undefined> {
    if (this.#clock.now() < this.#fetchedAt + unknownKeyPauseMs) return undefined
    return this.#fetchUnlessPaused()
  }

  async #fetchUnlessPaused(): Promise<JwtKeys> {
    if (this.#fault !== undefined && this.#clock.now() < this.#fault.at + failurePauseMs) throw this.#fault.error
    this.#running ??= this.#fetch().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #fetch(): Promise<JwtKeys> {
    try {
      this.#keys = await fetchKeys(this.#url)
      this.#fetchedAt = this.#clock.now()
      this.#fault = undefined
      return this.#keys
    } catch (cause) {
      const error = new Unavailable('the identity service', { cause })
      this.#fault = { at: this.#clock.now(), error }
      throw error
    }
  }
}

async function fetchKeys(url: string): Promise<JwtKeys> {
  const { status, body } = await getJson(url, {}, timeoutMs)
  if (body === undefined) throw new ServiceFault(`the key set: answered ${status}`)
  const { keys } = body
  try {
    if (Array.isArray(keys)) return new JwtKeys(keys)
  } catch {
    // Said below.
  }
  throw new ServiceFault('the key set: an answer that is no set of keys')
}
