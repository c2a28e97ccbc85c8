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

/** Bun gives an absolute URL with dot segments resolved, or the bare target of a request without a Host. */
export function parseTarget(url: string): RequestTarget {
  if (url.length > targetLengthMax) throw new RegistryRefusal('uri-too-long', { max: targetLengthMax })
  const pathStart = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2)
  const queryStart = url.indexOf('?', pathStart)
  const rawPath = url.slice(pathStart, queryStart === -1 ? undefined : queryStart)
  return {
    path: decodePath(pathStart === -1 ? '/' : rawPath),
    query: queryStart === -1 ? noQuery : new URLSearchParams(url.slice(queryStart + 1)),
  }
}

function decodePath(raw: string): string {
  if (raw.includes('//')) throw new RegistryRefusal('path-invalid')
  if (!raw.includes('%')) return raw
  if (ambiguous.test(raw)) throw new RegistryRefusal('path-invalid')
  try {
    return decodeURIComponent(raw)
  } catch {
    throw new RegistryRefusal('path-invalid')
  }
}
