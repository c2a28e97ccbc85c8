import { describeRefusal, type Refusal, RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { Answer } from './answer.ts'
import type { Area } from './mounts.ts'
import { receivedRange } from './ranges.ts'

/**
 * distribution-spec, "Error Codes": a 4xx code MUST be one of these. The last two are for 5xx, which it leaves open.
 */
type ErrorCode =
  | 'BLOB_UNKNOWN'
  | 'BLOB_UPLOAD_INVALID'
  | 'BLOB_UPLOAD_UNKNOWN'
  | 'DIGEST_INVALID'
  | 'MANIFEST_BLOB_UNKNOWN'
  | 'MANIFEST_INVALID'
  | 'MANIFEST_UNKNOWN'
  | 'NAME_INVALID'
  | 'NAME_UNKNOWN'
  | 'SIZE_INVALID'
  | 'UNAUTHORIZED'
  | 'DENIED'
  | 'UNSUPPORTED'
  | 'TOOMANYREQUESTS'
  | 'UNAVAILABLE'
  | 'UNKNOWN'

interface ErrorRow {
  readonly status: number
  readonly code: ErrorCode
}

/** The status and the code of every refusal. A refusal without its row does not compile. */
export const errorTable: Readonly<Record<Refusal, ErrorRow>> = {
  unauthenticated: { status: 401, code: 'UNAUTHORIZED' },
  'credentials-invalid': { status: 401, code: 'UNAUTHORIZED' },
  'cross-site-request': { status: 403, code: 'DENIED' },
  denied: { status: 403, code: 'DENIED' },
  'scope-insufficient': { status: 401, code: 'DENIED' },
  'account-disabled': { status: 403, code: 'DENIED' },
  'account-suspended': { status: 403, code: 'DENIED' },
  'read-only': { status: 503, code: 'UNAVAILABLE' },
  'quota-exceeded': { status: 403, code: 'DENIED' },
  'disk-low': { status: 503, code: 'UNAVAILABLE' },
  'login-invalid': { status: 401, code: 'UNAUTHORIZED' },
  'too-many-failures': { status: 429, code: 'TOOMANYREQUESTS' },
  'identity-invalid': { status: 400, code: 'UNSUPPORTED' },
  'user-unknown': { status: 404, code: 'UNSUPPORTED' },
  'user-exists': { status: 409, code: 'UNSUPPORTED' },
  'key-unknown': { status: 404, code: 'UNSUPPORTED' },
  'key-exists': { status: 409, code: 'UNSUPPORTED' },
  'too-many-keys': { status: 409, code: 'UNSUPPORTED' },
  'too-many-users': { status: 409, code: 'UNSUPPORTED' },
  'last-operator': { status: 409, code: 'UNSUPPORTED' },
  'webhook-unknown': { status: 404, code: 'UNSUPPORTED' },
  'webhook-exists': { status: 409, code: 'UNSUPPORTED' },
  'too-many-webhooks': { status: 409, code: 'UNSUPPORTED' },
  'delivery-unknown': { status: 404, code: 'UNSUPPORTED' },
  'route-unknown': { status: 404, code: 'UNSUPPORTED' },
  'method-unsupported': { status: 405, code: 'UNSUPPORTED' },
  'host-invalid': { status: 400, code: 'UNSUPPORTED' },
  'path-invalid': { status: 400, code: 'NAME_INVALID' },
  'uri-too-long': { status: 414, code: 'UNSUPPORTED' },
  'content-encoding-unsupported': { status: 415, code: 'UNSUPPORTED' },
  'body-invalid': { status: 400, code: 'UNSUPPORTED' },
  'body-incomplete': { status: 400, code: 'SIZE_INVALID' },
  'body-too-slow': { status: 408, code: 'SIZE_INVALID' },
  'query-invalid': { status: 400, code: 'UNSUPPORTED' },
  'page-size-invalid': { status: 400, code: 'UNSUPPORTED' },
  'sort-invalid': { status: 400, code: 'UNSUPPORTED' },
  'name-invalid': { status: 400, code: 'NAME_INVALID' },
  'name-unknown': { status: 404, code: 'NAME_UNKNOWN' },
  'path-unknown': { status: 404, code: 'NAME_UNKNOWN' },
  'tag-invalid': { status: 400, code: 'MANIFEST_INVALID' },
  'tag-immutable': { status: 409, code: 'DENIED' },
  'tag-history-unknown': { status: 404, code: 'MANIFEST_UNKNOWN' },
  'time-invalid': { status: 400, code: 'UNSUPPORTED' },
  'too-many-tags': { status: 414, code: 'UNSUPPORTED' },
  'digest-invalid': { status: 400, code: 'DIGEST_INVALID' },
  'digest-unsupported': { status: 400, code: 'DIGEST_INVALID' },
  'digest-mismatch': { status: 400, code: 'DIGEST_INVALID' },
  'manifest-unknown': { status: 404, code: 'MANIFEST_UNKNOWN' },
  'manifest-invalid': { status: 400, code: 'MANIFEST_INVALID' },
  'manifest-type-unsupported': { status: 400, code: 'MANIFEST_INVALID' },
  'manifest-too-large': { status: 413, code: 'SIZE_INVALID' },
  'manifest-blob-unknown': { status: 400, code: 'MANIFEST_BLOB_UNKNOWN' },
  'manifest-in-use': { status: 405, code: 'UNSUPPORTED' },
  'blob-unknown': { status: 404, code: 'BLOB_UNKNOWN' },
  'blob-in-use': { status: 405, code: 'UNSUPPORTED' },
  'blob-too-large': { status: 413, code: 'SIZE_INVALID' },
  'range-unsatisfiable': { status: 416, code: 'SIZE_INVALID' },
  'upload-unknown': { status: 404, code: 'BLOB_UPLOAD_UNKNOWN' },
  'upload-out-of-order': { status: 416, code: 'BLOB_UPLOAD_INVALID' },
  'upload-busy': { status: 416, code: 'BLOB_UPLOAD_INVALID' },
  'content-range-invalid': { status: 400, code: 'BLOB_UPLOAD_INVALID' },
  'content-length-mismatch': { status: 400, code: 'SIZE_INVALID' },
  'too-many-uploads': { status: 429, code: 'TOOMANYREQUESTS' },
}

const retryAfterSeconds = '5'

/** What the error body and its headers need to know of the request. */
export interface ErrorContext {
  readonly area: Area
  readonly path: string
  readonly requestId: string
  /** Creates the challenge of a 401. */
  readonly challenge: (refusal: Refusal) => string
}

/**
 * Turns any error into an answer. A refusal says what was refused. An unavailable dependency says that trying again may
 * help. A bug says only the request id, under which the log has the details.
 */
export function answerError(error: unknown, context: ErrorContext): Answer {
  if (error instanceof RegistryRefusal) {
    const row = errorTable[error.refusal]
    // An ErrorMessage has no other member for the reason.
    const message = context.area.kind === 'service' ? describeRefusal(error) : error.message
    return toAnswer(row, message, error.details, refusalHeaders(error, context), context)
  }
  if (error instanceof Unavailable) {
    const headers = { 'retry-after': retryAfterSeconds }
    return toAnswer({ status: 503, code: 'UNAVAILABLE' }, error.message, [], headers, context)
  }
  const details = [{ requestId: context.requestId }]
  return toAnswer({ status: 500, code: 'UNKNOWN' }, 'internal error', details, {}, context)
}

/**
 * The body in the registry interface is an OciError and an ErrorMessage at once, so that both kinds of clients can read
 * it. It has no member `details` at the top level: Docker would show it as the message.
 */
function toAnswer(
  { status, code }: ErrorRow,
  message: string,
  details: readonly unknown[],
  headers: Readonly<Record<string, string>>,
  { area }: ErrorContext,
): Answer {
  // Every entry has a detail. Docker reduces an entry that has none, and the message of the specification, to its code.
  // Its push then takes the code for a temporary error and repeats the request for 50 seconds without any output.
  const entries = details.length === 0 ? [{}] : details
  const body =
    area.kind === 'service'
      ? { msg: message }
      : { errors: entries.map((detail) => ({ code, message, detail })), msg: message }
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
}

function refusalHeaders(error: RegistryRefusal, context: ErrorContext): Record<string, string> {
  const detail = error.details[0] ?? {}
  switch (error.refusal) {
    case 'unauthenticated':
    case 'credentials-invalid':
    case 'scope-insufficient':
    case 'login-invalid':
      return { 'www-authenticate': context.challenge(error.refusal) }
    case 'method-unsupported':
      return { allow: String(detail['allow']) }
    case 'blob-in-use':
      return { allow: 'GET, HEAD' }
    case 'manifest-in-use':
      return { allow: 'GET, HEAD, PUT' }
    case 'range-unsatisfiable':
      return { 'content-range': `bytes */${detail['size']}` }
    case 'upload-out-of-order':
      return { location: context.path, range: receivedRange(Number(detail['received'])) }
    case 'too-many-failures':
      return { 'retry-after': String(detail['retryAfterSeconds']) }
    case 'read-only':
    case 'disk-low':
    case 'too-many-uploads':
      return { 'retry-after': retryAfterSeconds }
    default:
      return {}
  }
}
