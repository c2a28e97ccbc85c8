import type { Log } from '../lib/log.ts'
import type { Refusal } from '../oci/errors.ts'
import type { Right } from '../ports/identity.ts'
import type { HttpSettings } from './exchange.ts'
import type { RegistryMount } from './mounts.ts'
import type { Peers } from './peers.ts'
import type { RequestContext } from './request-context.ts'

/** What the request needed, as far as the scope of a token can express it. */
export interface NeededScope {
  readonly right: Right
  /** Undefined for the catalog. */
  readonly repository: string | undefined
  /** The repository that a blob is to be mounted from. */
  readonly mountFrom: string | undefined
}

export interface TokenEndpoint {
  readonly origin: string
  readonly mount: RegistryMount
  readonly serviceName: string
}

/**
 * Creates the `WWW-Authenticate` header of a 401: exactly one challenge, because clients choose differently among two.
 */
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

  /**
   * Tokens are valid in the registry interface only. Elsewhere, and at the token endpoint itself, the challenge is
   * Basic.
   */
  create(refusal: Refusal, { request, area, matched, target, presented }: RequestContext): string {
    const { serviceName, challenge } = this.#settings
    if (challenge === 'basic' || area.kind === 'service' || matched?.route.access === 'anyone') {
      return basicChallenge(serviceName)
    }
    const origin = this.#peers.originOf(request)
    this.#warnOfPlainHttp(request, origin)
    // containerd repeats the token of an anonymous caller again and again, unless it hears that the scope is
    // insufficient.
    const isToken = refusal === 'unauthenticated' && presented !== undefined
    const endpoint = { origin, mount: area.mount, serviceName }
    const needed = matched && neededScopeOf(matched, target)
    return bearerChallenge(endpoint, isToken ? 'scope-insufficient' : refusal, needed)
  }

  /**
   * Warns once if a proxy terminates TLS, and clients are sent to the token endpoint over plain HTTP with their keys.
   */
  #warnOfPlainHttp(request: Request, origin: string): void {
    if (this.#hasWarned || !origin.startsWith('http:') || request.headers.get('x-forwarded-proto') !== 'https') return
    this.#hasWarned = true
    const message =
      'the challenge sends clients to a token endpoint over plain HTTP: set server.public_url or server.trusted_proxies'
    this.#log.write('warn', message, { origin })
  }
}

function neededScopeOf(
  { route, values }: NonNullable<RequestContext['matched']>,
  { query }: RequestContext['target'],
): NeededScope | undefined {
  if (route.access !== 'repository' && route.access !== 'enabled account') return undefined
  return {
    right: route.right,
    repository: values['name'],
    mountFrom: query.has('mount') ? (query.get('from') ?? undefined) : undefined,
  }
}

export function basicChallenge(serviceName: string): string {
  return `Basic realm="${serviceName}", charset="UTF-8"`
}

/**
 * Says where to fetch a token, and which. The address is absolute, because Docker requires it, and in the mount of the
 * request.
 */
export function bearerChallenge(
  { origin, mount, serviceName }: TokenEndpoint,
  refusal: Refusal,
  needed: NeededScope | undefined,
): string {
  const scope = needed === undefined ? '' : toScope(needed)
  const parts = [`realm="${origin}${mount}/_token"`, `service="${serviceName}"`]
  if (scope !== '') parts.push(`scope="${scope}"`)
  if (refusal === 'scope-insufficient') parts.push('error="insufficient_scope"')
  if (refusal === 'credentials-invalid') parts.push('error="invalid_token"')
  return `Bearer ${parts.join(',')}`
}

const actions: Readonly<Record<Right, string>> = { pull: 'pull', push: 'pull,push', delete: 'delete', operate: '' }
const scopeName = /^[a-z0-9._\-/]{1,255}$/

/** Only names that can be quoted. The path of a request may contain anything. */
function toScope({ right, repository, mountFrom }: NeededScope): string {
  if (repository === undefined) return 'registry:catalog:*'
  if (!scopeName.test(repository)) return ''
  const own = `repository:${repository}:${actions[right]}`
  return mountFrom !== undefined && scopeName.test(mountFrom) ? `${own} repository:${mountFrom}:pull` : own
}
