import { SecretHasher } from '../../lib/hashing.ts'

/** How the service accepted a user name with its secret: as a password, which it exchanged for a token, or as an API key. */
export type AcceptedLogin =
  | { readonly kind: 'token'; readonly token: string; readonly endsAt: number }
  | { readonly kind: 'api-key' }

const entriesMax = 10_000

/**
 * Saves a request for a new token at each login, and a useless attempt to use an API key as a password. The cache is looked up
 * by a keyed hash, so it holds tokens but no passwords and no API keys.
 */
export class LoginCache {
  readonly #hasher = new SecretHasher()
  readonly #entries = new Map<string, AcceptedLogin>()

  find(userName: string, secret: string): AcceptedLogin | undefined {
    return this.#entries.get(this.#keyOf(userName, secret))
  }

  add(userName: string, secret: string, login: AcceptedLogin): void {
    const key = this.#keyOf(userName, secret)
    // A map keeps the order of insertion: the first entry is the oldest one.
    this.#entries.delete(key)
    this.#entries.set(key, login)
    if (this.#entries.size <= entriesMax) return
    const [oldest = key] = this.#entries.keys()
    this.#entries.delete(oldest)
  }

  remove(userName: string, secret: string): void {
    this.#entries.delete(this.#keyOf(userName, secret))
  }

  #keyOf(userName: string, secret: string): string {
    return this.#hasher.hash(`${userName}\n${secret}`)
  }
}
