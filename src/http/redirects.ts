import { AddressRanges } from '../lib/ip-addresses.ts'
import type { Peers } from './peers.ts'

export interface RedirectSettings {
  readonly lifetimeMs: number
  readonly exceptNetworks: readonly string[]
  readonly exceptAgents: readonly string[]
}

/**
 * Decides which requests are redirected to the blob store: some networks cannot reach it, and some clients do not
 * follow.
 */
export class Redirects {
  readonly lifetimeSeconds: number
  readonly #exceptNetworks: AddressRanges
  readonly #exceptAgents: readonly string[]

  constructor({ lifetimeMs, exceptNetworks, exceptAgents }: RedirectSettings) {
    this.lifetimeSeconds = Math.floor(lifetimeMs / 1000)
    this.#exceptNetworks = new AddressRanges(exceptNetworks)
    this.#exceptAgents = exceptAgents
  }

  appliesTo(request: Request, peers: Peers): boolean {
    const agent = request.headers.get('user-agent') ?? ''
    return (
      !this.#exceptAgents.some((text) => agent.includes(text)) && !this.#exceptNetworks.has(peers.clientOf(request))
    )
  }
}
