import type { OutgoingBytes } from '../ports/blob-store.ts'

/** The result of a handler. For HEAD, the body is left out. */
export interface Answer {
  readonly status: number
  /** A handler that sends the same headers again and again prepares them once, with `prepareHeaders`. */
  readonly headers: Readonly<Record<string, string>> | Headers
  readonly body?: string | Uint8Array | OutgoingBytes
  /** The length of the body. An answer to HEAD needs it, because it has no body. */
  readonly lengthBytes?: number
  /** For a stream that this process produces: how much of it is in memory at a time. */
  readonly memoryBytes?: number
}

export function jsonAnswer(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
}

export interface ResponseContext {
  readonly isHead: boolean
  readonly requestId: string
  /** The connection ends with this answer. */
  readonly isLast: boolean
  /** The URL contained an API key: the answer must not be cached, and the URL must not be passed on as a referrer. */
  readonly isSecretInQuery: boolean
}

/** In every answer. Some old clients check the first one. */
const commonHeaders = new Headers({
  'docker-distribution-api-version': 'registry/2.0',
  'x-content-type-options': 'nosniff',
})

/**
 * Headers that a `Response` copies as a whole. This costs a tenth of setting them one by one, which is the largest part
 * of the work for a small answer.
 */
export function prepareHeaders(record: Readonly<Record<string, string>>): Headers {
  const headers = new Headers(commonHeaders)
  for (const [name, value] of Object.entries(record)) headers.set(name, value)
  return headers
}

export function toResponse(answer: Answer, context: ResponseContext): Response {
  const { body, status } = answer
  const prepared = answer.headers instanceof Headers ? answer.headers : prepareHeaders(answer.headers)
  const response = new Response(context.isHead ? null : (body ?? null), { status, headers: prepared })
  // The response has copied the headers. Changing its copy saves another one.
  const { headers } = response
  headers.set('x-request-id', context.requestId)
  if (context.isLast) headers.set('connection', 'close')
  if (context.isSecretInQuery) {
    headers.set('cache-control', 'no-store')
    headers.set('referrer-policy', 'no-referrer')
  }
  if (context.isHead || !isText(body)) {
    const lengthBytes = answer.lengthBytes ?? (isText(body) ? Buffer.byteLength(body) : undefined)
    if (lengthBytes !== undefined) headers.set('content-length', String(lengthBytes))
  }
  return response
}

/** Bun knows the length of such a body, and sends it. */
function isText(body: Answer['body']): body is string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array
}
