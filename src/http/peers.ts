import { networkOf, TrustedProxies } from '../lib/client-address.ts'
import { RegistryRefusal } from '../oci/errors.ts'

/** The address at the other end of a request's connection, if there is one. */
export type AddressOf = (request: Request) => string | undefined

export interface PeerSettings {
  /** The address that users log in to, if it is not the one their requests name. */
  readonly publicUrl: string | undefined
  readonly trustedProxies: readonly string[]
}

const hostPattern = /^(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d+)?$/i

/** RFC 9112, 3.2: a request with two Host lines, or with one that is no host, MUST be answered with 400. */
export function checkHost(host: string | null): void {
  if (host !== null && !hostPattern.test(host)) throw new RegistryRefusal('host-invalid')
}

/** Who is at the other end, and by what address they reached us: what a request says, as far as it is to be believed. */
export class Peers {
  readonly #publicUrl: string | undefined
  readonly #proxies: TrustedProxies
  readonly #addressOf: AddressOf

  constructor({ publicUrl, trustedProxies }: PeerSettings, addressOf: AddressOf) {
    this.#publicUrl = publicUrl
    this.#proxies = new TrustedProxies(trustedProxies)
    this.#addressOf = addressOf
  }

  /**
   * The client's network, behind the proxies that we trust. Undefined where one of them names nobody: another Berth, say, that
   * asks for all its callers.
   */
  networkOf(request: Request): string | undefined {
    const client = this.clientOf(request)
    return this.#proxies.has(client) ? undefined : networkOf(client)
  }

  /** The client's address, behind the proxies that we trust. */
  clientOf(request: Request): string {
    return this.#proxies.clientOf(this.#addressOf(request) ?? '', request.headers.get('x-forwarded-for'))
  }

  /** The configured address, or else the request's own. */
  originOf(request: Request): string {
    if (this.#publicUrl !== undefined) return this.#publicUrl
    const host = request.headers.get('host')
    return host === null ? 'http://localhost' : `${this.#schemeOf(request)}://${host}`
  }

  #schemeOf(request: Request): 'http' | 'https' {
    if (request.headers.get('x-forwarded-proto') !== 'https') return 'http'
    return this.#proxies.has(this.#addressOf(request) ?? '') ? 'https' : 'http'
  }
}
