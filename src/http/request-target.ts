import { RegistryRefusal } from '../oci/errors.ts'

/** The parsed target of a request. All decisions use this, never the text of the URL. */
export interface RequestTarget {
  readonly path: string
  readonly query: URLSearchParams
}

const targetLengthMax = 8_192
const noQuery = new URLSearchParams()

// An encoded slash, backslash or dot would have different meanings for different readers. A control character could
// forge lines in a log.
const ambiguous = /%(?:2f|5c|2e|[01][0-9a-f]|7f)/i

/** No valid path contains characters outside ASCII, or control characters. */
const printable = /^[\x20-\x7e]*$/

/** The target as it was received, before its path is checked. */
export interface RawTarget {
  readonly path: string
  readonly queryText: string | undefined
}

/** `url` is absolute with dot segments resolved or, for a request without `Host`, only the target. Bun makes it so. */
export function splitTarget(url: string): RawTarget {
  const pathStart = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2)
  const queryStart = url.indexOf('?', pathStart)
  return {
    path: pathStart === -1 ? '/' : url.slice(pathStart, queryStart === -1 ? undefined : queryStart),
    queryText: queryStart === -1 ? undefined : url.slice(queryStart + 1),
  }
}

/** Refuses a URL that is too long, or whose path is ambiguous. `raw` saves a second split. */
export function parseTarget(url: string, raw: RawTarget = splitTarget(url)): RequestTarget {
  if (url.length > targetLengthMax) throw new RegistryRefusal('uri-too-long', { max: targetLengthMax })
  const { path, queryText } = raw
  return { path: decodePath(path), query: queryText === undefined ? noQuery : new URLSearchParams(queryText) }
}

function decodePath(raw: string): string {
  if (raw.includes('//') || !printable.test(raw)) throw new RegistryRefusal('path-invalid')
  if (!raw.includes('%')) return raw
  if (ambiguous.test(raw)) throw new RegistryRefusal('path-invalid')
  const path = decodeOrRefuse(raw)
  if (!printable.test(path)) throw new RegistryRefusal('path-invalid')
  return path
}

function decodeOrRefuse(raw: string): string {
  try {
    return decodeURIComponent(raw)
  } catch {
    throw new RegistryRefusal('path-invalid')
  }
}
