/**
 * Faults of a JSON text that `JSON.parse` accepts and a registry must not: nesting that is too deep, a duplicate key
 * (some parsers use the first one, others the last one), and keys that differ only in case (the same field for a client
 * in Go, two for this program). With the last two, one document has two meanings.
 */
export type JsonFault =
  | { readonly kind: 'too deep' | 'not JSON' }
  /** The key as written the second time. */
  | { readonly kind: 'duplicate key'; readonly key: string }

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const colon = 0x3a

/** The first fault. Takes linear time, and keeps only the keys of open objects. */
export function findJsonFault(text: string, depthMax: number): JsonFault | undefined {
  const keysOfOpen: Array<Set<string> | undefined> = []
  let position = 0
  while (position < text.length) {
    const code = text.charCodeAt(position)
    if (code === quote) {
      const end = endOfString(text, position)
      if (end === -1) return { kind: 'not JSON' }
      const keys = keysOfOpen.at(-1)
      if (keys !== undefined && isFollowedByColon(text, end)) {
        const key = unquote(text.slice(position, end))
        if (key === undefined) return { kind: 'not JSON' }
        const folded = foldKey(key)
        if (keys.has(folded)) return { kind: 'duplicate key', key }
        keys.add(folded)
      }
      position = end
      continue
    }
    if (code === openBrace || code === openBracket) {
      if (keysOfOpen.length === depthMax) return { kind: 'too deep' }
      keysOfOpen.push(code === openBrace ? new Set() : undefined)
    } else if (code === closeBrace || code === closeBracket) {
      if (keysOfOpen.pop() === undefined && code === closeBrace) return { kind: 'not JSON' }
    }
    position += 1
  }
  return undefined
}

/** The position after the closing quote of the string that starts at `start`, or -1. */
function endOfString(text: string, start: number): number {
  for (let position = start + 1; position < text.length; position += 1) {
    const code = text.charCodeAt(position)
    if (code === backslash) position += 1
    else if (code === quote) return position + 1
  }
  return -1
}

function isFollowedByColon(text: string, start: number): boolean {
  for (let position = start; position < text.length; position += 1) {
    const code = text.charCodeAt(position)
    if (code === colon) return true
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return false
  }
  return false
}

/** Keys with the same result are one field for Go's decoder. It also folds two letters outside of ASCII. */
export function foldKey(key: string): string {
  return key.toLowerCase().replaceAll('\u017f', 's').replaceAll('\u212a', 'k')
}

/** Resolves the escapes of a quoted key. */
function unquote(quoted: string): string | undefined {
  try {
    const key: unknown = JSON.parse(quoted)
    return typeof key === 'string' ? key : undefined
  } catch {
    return undefined
  }
}
