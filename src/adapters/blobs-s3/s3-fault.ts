import { childrenOf, parseXml, textOf } from './s3-xml.ts'

interface S3FaultDetail {
  readonly status?: number | undefined
  /** What S3 calls it (`NoSuchUpload`, `SlowDown`), or a word of ours (`timeout`, `connection`, `malformed`). */
  readonly code: string
  /** More words, of ours alone: texts of the server may hold what it was asked. */
  readonly words?: string | undefined
  readonly requestId?: string | undefined
  readonly retryAfterMs?: number | undefined
  /** The server's clock at its answer. */
  readonly serverTimeMs?: number | undefined
  readonly cause?: unknown
}

/** S3 refused, or did not answer in a way that tells anything. */
export class S3Fault extends Error {
  override readonly name = 'S3Fault'
  readonly status: number | undefined
  readonly code: string
  readonly retryAfterMs: number | undefined
  readonly serverTimeMs: number | undefined

  constructor(operation: string, detail: S3FaultDetail) {
    const { status, code, words, requestId } = detail
    const parts = [status, code, words, requestId === undefined ? undefined : `(request ${requestId})`]
    const text = `${operation}: ${parts.filter((part) => part !== undefined).join(' ')}`
    super(text, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.status = status
    this.code = code
    this.retryAfterMs = detail.retryAfterMs
    this.serverTimeMs = detail.serverTimeMs
  }

  /** It may well go the next time. */
  get isTransient(): boolean {
    return (this.status !== undefined && transientStatuses.has(this.status)) || transientCodes.has(this.code)
  }

  /** The request had no effect, for sure: even what must not be done twice may be tried again. */
  get isNothingDone(): boolean {
    if (this.status === 429 || this.code === 'refused') return true
    return this.status === 503 && (this.code === 'SlowDown' || this.code === 'ServiceUnavailable')
  }
}

/** An answer without a reason that we know, as to every HEAD. */
export const unexplained = 'unexplained'

const transientStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])
const transientCodes: ReadonlySet<string> = new Set([
  'refused',
  'connection',
  'timeout',
  // Said with a 400.
  'RequestTimeout',
  // Said within a 200 by CompleteMultipartUpload.
  'InternalError',
  'ServiceUnavailable',
  'SlowDown',
])

/** Nothing was sent: nobody was there. */
const refusedCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])
/** Our own body was not as long as it had to be: no second try mends that. */
const bodyCode = 'ERR_HTTP_CONTENT_LENGTH_MISMATCH'
const certificateFault = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/

/** What the HTTP client threw. */
export function faultOfConnection(operation: string, cause: unknown): S3Fault {
  if (cause instanceof S3Fault) return cause
  const name = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
  if (refusedCodes.has(name)) return new S3Fault(operation, { code: 'refused', words: name, cause })
  if (name === bodyCode) return new S3Fault(operation, { code: 'body', cause })
  if (certificateFault.test(name)) return new S3Fault(operation, { code: 'certificate', words: name, cause })
  return new S3Fault(operation, { code: 'connection', words: name === '' ? undefined : name, cause })
}

/** What S3 answered, where that is not what was asked for. `text` is the body, as far as it was read. */
export function faultOfAnswer(
  operation: string,
  status: number,
  headers: Headers,
  text: string,
  nowMs: number,
): S3Fault {
  const serverTimeMs = timeOf(headers.get('date'))
  const detail = {
    status,
    requestId: plainText(headers.get('x-amz-request-id')),
    retryAfterMs: retryAfter(headers.get('retry-after'), serverTimeMs ?? nowMs),
    serverTimeMs,
  }
  if (status >= 300 && status < 400) {
    const region = plainText(headers.get('x-amz-bucket-region'))
    const words = region === undefined ? 'the bucket is elsewhere' : `the bucket is in region ${region}`
    return new S3Fault(operation, { ...detail, code: 'redirect', words })
  }
  return new S3Fault(operation, { ...detail, code: codeIn(text) ?? unexplained })
}

/** The code of an error document, if that is what it is. */
export function codeIn(text: string): string | undefined {
  try {
    const document = parseXml(text)
    // STS has one more element around it.
    const error = document.name === 'ErrorResponse' ? childrenOf(document, 'Error')[0] : document
    return error?.name === 'Error' ? plainText(textOf(error, 'Code') ?? null) : undefined
  } catch {
    // A page of some proxy, or half a document.
    return undefined
  }
}

/** Milliseconds since 1970 of a `Date` header or of a time in an answer. */
export function timeOf(text: string | null | undefined): number | undefined {
  const time = Date.parse(text ?? '')
  return Number.isNaN(time) ? undefined : time
}

function retryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000
  const time = timeOf(header)
  return time === undefined ? undefined : Math.max(0, time - nowMs)
}

/** Only what looks like a name or a number gets into our own texts. */
function plainText(text: string | null): string | undefined {
  return text !== null && /^[\w.-]{1,64}$/.test(text) ? text : undefined
}
