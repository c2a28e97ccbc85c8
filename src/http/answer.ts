import type { OutgoingBytes } from '../ports/blob-store.ts'

/** The result of a handler. For HEAD, the body is left out. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
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

export function toResponse(answer: Answer, context: ResponseContext): Response {
  const { body, lengthBytes, status } = answer
  const headers: Record<string, string> = {
    ...answer.headers,
    // Some old clients check this header.
    'docker-distribution-api-version': 'registry/2.0',
    'x-content-type-options': 'nosniff',
    'x-request-id': context.requestId,
  }
  if (context.isLast) headers['connection'] = 'close'
  if (context.isSecretInQuery) {
    headers['cache-control'] = 'no-store'
    headers['referrer-policy'] = 'no-referrer'
  }
  const length = lengthBytes ?? (typeof body === 'string' ? Buffer.byteLength(body) : undefined)
  if (length !== undefined) headers['content-length'] = String(length)
  return new Response(context.isHead ? null : (body ?? null), { status, headers })
}
