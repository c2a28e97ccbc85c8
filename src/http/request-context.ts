import type { ByteSource } from '../lib/byte-source.ts'
import type { Principal } from '../ports/identity.ts'
import type { PresentedCredential } from './credentials.ts'
import type { Area } from './mounts.ts'
import type { RequestMemory } from './request-memory.ts'
import type { RequestTarget } from './request-target.ts'
import type { MatchedRoute } from './router.ts'

/** Why a request ended before its body did, and how many bytes of an upload are kept: two fields of its log line. */
export interface Interruption {
  readonly interrupted: unknown
  readonly kept: unknown
}

/** One request, and what has been found out about it so far. Its error body and its log line are written from this. */
export interface RequestContext {
  readonly request: Request
  readonly id: string
  readonly startedAt: number
  target: RequestTarget
  area: Area
  matched: MatchedRoute | undefined
  presented: PresentedCredential | undefined
  principal: Principal | undefined
  body: ByteSource | undefined
  /** Created when the request first needs memory that counts against the limits. */
  memory: RequestMemory | undefined
  interruption: Interruption | undefined
}

const requestIdPattern = /^[A-Za-z0-9._-]{1,64}$/

const unparsedTarget: RequestTarget = { path: '', query: new URLSearchParams() }

export function openContext(request: Request): RequestContext {
  const given = request.headers.get('x-request-id')
  return {
    request,
    id: given !== null && requestIdPattern.test(given) ? given : crypto.randomUUID(),
    startedAt: performance.now(),
    target: unparsedTarget,
    area: { kind: 'service' },
    matched: undefined,
    presented: undefined,
    principal: undefined,
    body: undefined,
    memory: undefined,
    interruption: undefined,
  }
}

export function isChange({ method }: Request): boolean {
  return method !== 'GET' && method !== 'HEAD'
}

/** If the request target could not be parsed, the text of the URL decides. */
export function hasKeyInQuery({ request, target }: RequestContext): boolean {
  return target === unparsedTarget ? request.url.includes('apiKey') : target.query.has('apiKey')
}
