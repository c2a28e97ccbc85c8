import { RegistryRefusal } from '../oci/errors.ts'

/** What a request asks for, taken apart once. Everything that decides anything looks at this and not at the text. */
export interface RequestTarget {
  readonly path: string
  readonly query: URLSearchParams
}

const targetLengthMax = 8_192
const noQuery = new URLSearchParams()

// An encoded slash, backslash or dot would make one path mean two things to two readers; a control character would write
// lines of its own into a log.
const ambiguous = /%(?:2f|5c|2e|[01][0-9a-f]|7f)/i

/** What no address of ours holds: a letter beyond ASCII, or one that moves a terminal's cursor. */
const printable = /^[\x20-\x7e]*$/

/** A request's address as it came, its path not yet looked at. */
export interface RawTarget {
  readonly path: string
  readonly queryText: string | undefined
}

/** Bun gives an absolute URL with dot segments resolved, or the bare target of a request without a Host. */
export function splitTarget(url: string): RawTarget {
  const pathStart = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2)
  const queryStart = url.indexOf('?', pathStart)
  return {
    path: pathStart === -1 ? '/' : url.slice(pathStart, queryStart === -1 ? undefined : queryStart),
    queryText: queryStart === -1 ? undefined : url.slice(queryStart + 1),
  }
}

/** Refuses an address that is too long, or whose path could be read in two ways. `raw`: where it is in parts already. */
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
