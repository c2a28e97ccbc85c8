/** How a user name and its secret were good at the service. */
export type Way =
  | { readonly kind: 'token'; readonly token: string; readonly endsAt: number }
  | { readonly kind: 'api-key' }

const waysMax = 10_000

/**
 * Remembers whether a secret was a password or an API key, and the token that a password got. So the service is not asked
 * for a new token each time, and a key is not tried as a password again. Keyed hashes are kept, and no secrets but the
 * tokens.
 */
export class RememberedWays {
  readonly #hmac = new Bun.CryptoHasher('sha256', crypto.getRandomValues(new Uint8Array(32)))
  readonly #ways = new Map<string, Way>()

  find(userName: string, secret: string): Way | undefined {
    return this.#ways.get(this.#keyOf(userName, secret))
  }

  put(userName: string, secret: string, way: Way | undefined): void {
    const key = this.#keyOf(userName, secret)
    // Entered anew, so that the first of the map is the one that was put longest ago.
    this.#ways.delete(key)
    if (way === undefined) return
    this.#ways.set(key, way)
    if (this.#ways.size <= waysMax) return
    for (const oldest of this.#ways.keys()) {
      this.#ways.delete(oldest)
      break
    }
  }

  #keyOf(userName: string, secret: string): string {
    return this.#hmac.copy().update(`${userName}\n${secret}`).digest('base64')
  }
}
