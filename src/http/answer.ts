import type { OutgoingBytes } from '../ports/blob-store.ts'

/** What a handler gives back. It never touches the socket; a HEAD gets the same without the body. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | OutgoingBytes
  /** The body's length, where the answer to HEAD has to name it without having the body. */
  readonly lengthBytes?: number
  /** For a stream that this process makes: how much of it is in memory at a time. */
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
  /** The request's address held a key: nobody may keep the answer or pass the address on. */
  readonly isSecretInQuery: boolean
}

/** An answer, as the server sends it. */
export function toResponse(answer: Answer, context: ResponseContext): Response {
  const { body, lengthBytes, status } = answer
  const headers: Record<string, string> = {
    ...answer.headers,
    // Some clients of the older kind look for this before they go on.
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
