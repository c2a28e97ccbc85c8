import type { Log } from '../lib/log.ts'
import type { Refusal } from '../oci/errors.ts'
import { type Asked, basicChallenge, bearerChallenge } from './challenge.ts'
import type { PresentedCredential } from './credentials.ts'
import type { HttpSettings } from './exchange.ts'
import type { Territory } from './mounts.ts'
import type { Peers } from './peers.ts'
import type { RequestTarget } from './request-target.ts'
import type { MatchedRoute } from './router.ts'

/** What is known of a request that is answered with 401. */
export interface Challenged {
  readonly territory: Territory
  readonly target: RequestTarget
  readonly found: MatchedRoute | undefined
  readonly presented: PresentedCredential | undefined
}

/** What strangers are asked for. Exactly one thing: clients disagree about which of two they take. */
export class Challenges {
  readonly #settings: Pick<HttpSettings, 'serviceName' | 'challenge'>
  readonly #peers: Peers
  readonly #log: Log
  #hasWarned = false

  constructor(settings: Pick<HttpSettings, 'serviceName' | 'challenge'>, peers: Peers, log: Log) {
    this.#settings = settings
    this.#peers = peers
    this.#log = log
  }

  /** Tokens are for the registry; elsewhere, and where tokens are sold, credentials are asked for. */
  make(request: Request, refusal: Refusal, { territory, found, target, presented }: Challenged): string {
    const { serviceName, challenge } = this.#settings
    if (challenge === 'basic' || territory.kind === 'service' || found?.route.access === 'anyone') {
      return basicChallenge(serviceName)
    }
    const origin = this.#peers.originOf(request)
    this.#warnOfPlainTokens(request, origin)
    // A stranger's token that is not enough is as good as none, but containerd tries it again and again if not told so.
    const isToken = refusal === 'unauthenticated' && presented !== undefined
    const place = { origin, mount: territory.mount, serviceName }
    return bearerChallenge(place, isToken ? 'scope-insufficient' : refusal, found && toAsked(found, target))
  }

  /** Once: a proxy speaks TLS for us, and we send clients to buy their tokens without it, key in hand. */
  #warnOfPlainTokens(request: Request, origin: string): void {
    if (this.#hasWarned || !origin.startsWith('http:') || request.headers.get('x-forwarded-proto') !== 'https') return
    this.#hasWarned = true
    const words = 'tokens are sold over plain HTTP: set server.public_url, or server.trusted_proxies'
    this.#log.write('warn', words, { origin })
  }
}

function toAsked({ route, values }: MatchedRoute, { query }: RequestTarget): Asked | undefined {
  if (route.access !== 'repository' && route.access !== 'enabled account') return undefined
  return {
    right: route.right,
    repository: values['name'],
    mountFrom: query.has('mount') ? (query.get('from') ?? undefined) : undefined,
  }
}
