import type { Network } from '../identity/failure-limits.ts'
import { networksOf, TrustedProxies } from '../lib/ip-addresses.ts'
import { RegistryRefusal } from '../oci/errors.ts'

/** The remote address of a request's connection, if there is a connection. */
export type AddressOf = (request: Request) => string | undefined

export interface PeerSettings {
  /** The URL that users log in to, if it differs from the `Host` of their requests. */
  readonly publicUrl: string | undefined
  readonly trustedProxies: readonly string[]
}

/** How many times the limits of one client apply to a network: for IPv6, to a /64, a /56 and a /48. */
const sharesByWidth = [1, 4, 16]
const proxyShare = 10

const hostPattern = /^(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d+)?$/i

/** RFC 9112, 3.2: a request with two Host lines, or with an invalid one, MUST be answered with 400. */
export function checkHost(host: string | null): void {
  if (host !== null && !hostPattern.test(host)) throw new RegistryRefusal('host-invalid')
}

/** The address of the client, and the origin that it used. Forwarding headers count only from trusted proxies. */
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
   * The networks of the client, the narrowest first. A trusted proxy that names no client, or that is itself the client
   * (such as another Berth that authenticates its own callers here), may speak for many clients.
   */
  networksOf(request: Request): readonly Network[] {
    const client = this.clientOf(request)
    if (this.#proxies.has(client)) return [{ name: client, share: proxyShare }]
    return networksOf(client).map((name, width) => ({ name, share: sharesByWidth[width] ?? 1 }))
  }

  /** The address of the client: of the last hop that is no trusted proxy. */
  clientOf(request: Request): string {
    return this.#proxies.clientOf(this.#addressOf(request) ?? '', request.headers.get('x-forwarded-for'))
  }

  /** The configured origin, or else the origin of the request. */
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
