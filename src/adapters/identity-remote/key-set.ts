import { type Claims, JwtKeys, type JwtRules } from '../../lib/jwt.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { Clock } from '../../ports/clock.ts'
import { requestJson, ServiceFault } from './json-request.ts'

const timeoutMs = 5_000
const maxAgeMs = 10 * 60_000

/** Tokens with invented key ids must not cause a request each. */
const unknownKeyPauseMs = 30_000
const failurePauseMs = 5_000

/**
 * The public keys of the identity service (JWKS). A set that is too old is fetched again before it is used. While that fails,
 * the old set stays valid, so that an outage of the service does not reject every token.
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

  /** The claims of a valid token. Rejects with `Unavailable` if the needed keys cannot be fetched. */
  async verify(token: string, rules: Omit<JwtRules, 'nowMs'>): Promise<Claims | undefined> {
    const all = { ...rules, nowMs: this.#clock.now() }
    const verdict = await (await this.#getCurrent()).verify(token, all)
    if ('claims' in verdict) return verdict.claims
    if (verdict.fault !== 'unknown-key') return undefined
    const newerKeys = await this.#findNewer()
    const second = await newerKeys?.verify(token, all)
    return second !== undefined && 'claims' in second ? second.claims : undefined
  }

  async #getCurrent(): Promise<JwtKeys> {
    const keys = this.#keys
    if (keys === undefined) return this.#fetchUnlessPaused()
    if (this.#clock.now() < this.#fetchedAt + maxAgeMs) return keys
    const fetched = this.#fetchUnlessPaused().catch(() => keys)
    // Do not wait for a service that failed recently.
    return this.#fault === undefined ? fetched : keys
  }

  /** Fetches the keys again, because they may have changed. Undefined if they were fetched a moment ago. */
  async #findNewer(): Promise<JwtKeys | undefined> {
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
      const error = new Unavailable('identity-service', { cause })
      this.#fault = { at: this.#clock.now(), error }
      throw error
    }
  }
}

async function fetchKeys(url: string): Promise<JwtKeys> {
  const { status, body } = await requestJson(url, { timeoutMs })
  if (body === undefined) throw new ServiceFault(`the key set: answered ${status}`)
  const { keys } = body
  try {
    if (Array.isArray(keys)) return new JwtKeys(keys)
  } catch {
    // Reported below.
  }
  throw new ServiceFault('the key set: an answer that is no set of keys')
}
