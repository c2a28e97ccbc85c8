import { type HttpClients, type IncomingResponse, type SignedRequest, send } from './s3-request.ts'

interface S3ErrorDetail {
  readonly status?: number | undefined
  /** The code of S3 (`NoSuchUpload`, `SlowDown`), or one of this adapter (`timeout`, `connection`, `malformed`). */
  readonly code: string
  /** Text of this adapter only: a message of the server may repeat secrets of the request. */
  readonly text?: string | undefined
  readonly requestId?: string | undefined
  readonly retryAfterMs?: number | undefined
  /** The time of the server when it sent the response. */
  readonly serverTimeMs?: number | undefined
  readonly cause?: unknown
}

/** S3 rejected a request, or its response cannot be understood, or there was none. */
export class S3Error extends Error {
  override readonly name = 'S3Error'
  readonly status: number | undefined
  readonly code: string
  readonly retryAfterMs: number | undefined
  readonly serverTimeMs: number | undefined

  constructor(operation: string, detail: S3ErrorDetail) {
    const { status, code, text, requestId } = detail
    const parts = [status, code, text, requestId === undefined ? undefined : `(request ${requestId})`]
    const message = `${operation}: ${parts.filter((part) => part !== undefined).join(' ')}`
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.status = status
    this.code = code
    this.retryAfterMs = detail.retryAfterMs
    this.serverTimeMs = detail.serverTimeMs
  }

  /** The same request may succeed later. */
  get isTransient(): boolean {
    return (this.status !== undefined && transientStatuses.has(this.status)) || transientCodes.has(this.code)
  }

  /** The request certainly had no effect, so even a request that must not be carried out twice can be repeated. */
  get hadNoEffect(): boolean {
    if (this.status === 429 || this.code === 'refused') return true
    return this.status === 503 && (this.code === 'SlowDown' || this.code === 'ServiceUnavailable')
  }
}

/** The code of an error response without a known code. No response to HEAD has one. */
export const unexplained = 'unexplained'

const transientStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])
const transientCodes: ReadonlySet<string> = new Set([
  'refused',
  'connection',
  'timeout',
  // S3 sends this code with status 400.
  'RequestTimeout',
  // CompleteMultipartUpload sends these codes with status 200.
  'InternalError',
  'ServiceUnavailable',
  'SlowDown',
])

/** The connection was not opened, so nothing was sent. */
const refusedCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])
/** The body of our request did not have the announced length. A second attempt would fail in the same way. */
const bodyLengthCode = 'ERR_HTTP_CONTENT_LENGTH_MISMATCH'
const certificateCode = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/

export function malformed(operation: string, text: string, cause?: unknown): S3Error {
  return new S3Error(operation, { code: 'malformed', text, cause })
}

function connectionError(operation: string, cause: unknown): S3Error {
  if (cause instanceof S3Error) return cause
  const name = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
  if (refusedCodes.has(name)) return new S3Error(operation, { code: 'refused', text: name, cause })
  if (name === bodyLengthCode) return new S3Error(operation, { code: 'body', cause })
  if (certificateCode.test(name)) return new S3Error(operation, { code: 'certificate', text: name, cause })
  return new S3Error(operation, { code: 'connection', text: name === '' ? undefined : name, cause })
}

/** The code in an error document; undefined where the text is anything else, such as an HTML page of a proxy. */
export function errorCodeIn(text: string): string | undefined {
  if (!/^\s*(?:<\?xml[^>]*>\s*)?<Error[\s>]/.test(text) || !text.trimEnd().endsWith('</Error>')) return undefined
  return /<Code>([\w.-]{1,64})<\/Code>/.exec(text)?.[1]
}

/** Milliseconds since 1970 of a `Date` header or of a time in a document. */
export function parseTime(text: string | null): number | undefined {
  const time = Date.parse(text ?? '')
  return Number.isNaN(time) ? undefined : time
}

export function parseSize(operation: string, text: string | null): number {
  if (text === null || !/^\d{1,15}$/.test(text)) throw malformed(operation, 'the response has no valid size')
  return Number(text)
}

function parseRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000
  const time = parseTime(header)
  return time === undefined ? undefined : Math.max(0, time - nowMs)
}

/** Text of the server becomes part of our messages only if it looks like a name or a number. */
function plainText(text: string | null): string | undefined {
  return text !== null && /^[\w.-]{1,64}$/.test(text) ? text : undefined
}

const errorBytesMax = 64 * 1024
/** The longest wait for the next bytes of an error document. The timeout of the request ends it, too. */
const errorBodyMs = 5_000
/** A list has at most a thousand names of one kilobyte each; escaped, they are several times as long. */
const documentBytesMax = 8 * 1024 * 1024
/** While it works, CompleteMultipartUpload sends spaces for minutes. */
const documentMs = 15 * 60_000

/** A successful response. Its body is read piece by piece, or with `text` as a whole. All methods reject with `S3Error`. */
export class S3Response {
  readonly status: number
  readonly headers: Headers
  readonly #operation: string
  readonly #controller: AbortController
  readonly #incoming: IncomingResponse
  #isTimedOut = false

  private constructor(operation: string, incoming: IncomingResponse, controller: AbortController) {
    this.status = incoming.status
    this.headers = incoming.headers
    this.#operation = operation
    this.#controller = controller
    this.#incoming = incoming
  }

  /** Sends the request, and resolves when the headers of a successful response have arrived. */
  static async fetch(request: SignedRequest, clients: HttpClients, nowMs: () => number): Promise<S3Response> {
    const { operation } = request
    const controller = new AbortController()
    let isTimedOut = false
    const timer = setTimeout(() => {
      isTimedOut = true
      controller.abort()
    }, request.timeoutMs)
    try {
      const response = new S3Response(operation, await send(request, clients, controller.signal), controller)
      if (response.status >= 200 && response.status < 300) return response
      throw await response.#toError(nowMs())
    } catch (error) {
      // The status has arrived, even if the document that explains it has not.
      if (error instanceof S3Error) throw error
      throw isTimedOut ? new S3Error(operation, { code: 'timeout' }) : connectionError(operation, error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** The next bytes, or undefined after the last ones. */
  async next(waitMs: number): Promise<Uint8Array | undefined> {
    const timer = setTimeout(() => {
      this.#isTimedOut = true
      this.#controller.abort()
    }, waitMs)
    try {
      return (await this.#incoming.read()).value
    } catch (error) {
      if (this.#isTimedOut) throw new S3Error(this.#operation, { code: 'timeout' })
      throw connectionError(this.#operation, error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** The whole body, as text of bounded length. */
  async text(waitMs: number, bytesMax = documentBytesMax): Promise<string> {
    const chunks: Uint8Array[] = []
    const startedAt = performance.now()
    let length = 0
    for (;;) {
      const chunk = await this.next(waitMs)
      if (chunk === undefined) return Buffer.concat(chunks).toString()
      length += chunk.length
      chunks.push(chunk)
      if (length <= bytesMax && performance.now() - startedAt <= documentMs) continue
      this.abort()
      throw malformed(this.#operation, 'the response is too long')
    }
  }

  /** The caller needs no more bytes. The connection can be used again if the body ends here, and is closed otherwise. */
  async endRead(waitMs: number): Promise<void> {
    const chunk = await this.next(waitMs).catch(() => undefined)
    if (chunk !== undefined) this.abort()
  }

  /** Closes the connection, where the body is not read to its end. */
  abort(): void {
    this.#controller.abort()
  }

  async #toError(nowMs: number): Promise<S3Error> {
    const { status, headers } = this
    // If the body cannot be read, or not in time, the status still counts.
    const text = await this.text(errorBodyMs, errorBytesMax).catch(() => '')
    const serverTimeMs = parseTime(headers.get('date'))
    const detail = {
      status,
      requestId: plainText(headers.get('x-amz-request-id')),
      retryAfterMs: parseRetryAfter(headers.get('retry-after'), serverTimeMs ?? nowMs),
      serverTimeMs,
    }
    if (status >= 400) return new S3Error(this.#operation, { ...detail, code: errorCodeIn(text) ?? unexplained })
    const region = plainText(headers.get('x-amz-bucket-region'))
    const where = region === undefined ? 'at another endpoint' : `in region ${region}`
    return new S3Error(this.#operation, { ...detail, code: 'redirect', text: `the bucket is ${where}` })
  }
}
