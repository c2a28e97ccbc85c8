import type { ByteSource } from '../lib/byte-source.ts'
import type { Principal } from '../ports/identity.ts'
import { findCredential, type PresentedCredential } from './credentials.ts'
import type { Area } from './mounts.ts'
import type { RequestMemory } from './request-memory.ts'
import type { RequestTarget } from './request-target.ts'
import type { MatchedRoute } from './router.ts'

/** Why a request ended before its body did, and how many bytes of an upload are kept: two fields of its log line. */
export interface Interruption {
  readonly interrupted: unknown
  readonly kept: unknown
}

const requestIdPattern = /^[A-Za-z0-9._-]{1,64}$/

const unparsedTarget: RequestTarget = { path: '', query: new URLSearchParams() }

/** One request, and what has been found out about it so far. Its error body and its log line are written from this. */
export class RequestContext {
  readonly request: Request
  readonly id: string
  readonly startedAt = performance.now()
  target: RequestTarget = unparsedTarget
  area: Area = { kind: 'service' }
  matched: MatchedRoute | undefined = undefined
  principal: Principal | undefined = undefined
  body: ByteSource | undefined = undefined
  /** Created when the request first needs memory that counts against the limits. */
  memory: RequestMemory | undefined = undefined
  interruption: Interruption | undefined = undefined
  #presented: PresentedCredential | undefined | 'unread' = 'unread'

  constructor(request: Request) {
    this.request = request
    const given = request.headers.get('x-request-id')
    this.id = given !== null && requestIdPattern.test(given) ? given : crypto.randomUUID()
  }

  /** The credential of the request. It is read when it is first needed, because most requests are recognised without it. */
  get presented(): PresentedCredential | undefined {
    if (this.#presented === 'unread') this.#presented = findCredential(this.request.headers, this.target.query)
    return this.#presented
  }

  /** If the request target could not be parsed, the text of the URL decides. */
  get hasKeyInQuery(): boolean {
    return this.target === unparsedTarget ? this.request.url.includes('apiKey') : this.target.query.has('apiKey')
  }
}

export function isChange({ method }: Request): boolean {
  return method !== 'GET' && method !== 'HEAD'
}
