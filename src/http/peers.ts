import type { Network } from '../identity/failure-limits.ts'
import { networksOf, TrustedProxies } from '../lib/ip-addresses.ts'
import { RegistryRefusal } from '../oci/errors.ts'

/** The address at the other end of a request's connection, if there is one. */
export type AddressOf = (request: Request) => string | undefined

export interface PeerSettings {
  /** The address that users log in to, if it is not the one their requests name. */
  readonly publicUrl: string | undefined
  readonly trustedProxies: readonly string[]
}

/** How many times the limits of one client a network has: of IPv6, a /64, a /56 and a /48. */
const sharesByWidth = [1, 4, 16]
const proxyShare = 10

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
   * The client's networks, behind the proxies that we trust, the narrowest first. A trusted proxy that names no client, or
   * that is itself the client (another Berth that asks for all its callers), may speak for many.
   */
  networksOf(request: Request): readonly Network[] {
    const client = this.clientOf(request)
    if (this.#proxies.has(client)) return [{ name: client, share: proxyShare }]
    return networksOf(client).map((name, width) => ({ name, share: sharesByWidth[width] ?? 1 }))
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
