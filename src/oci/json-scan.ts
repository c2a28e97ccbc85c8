/**
 * A look at a JSON text before it is parsed, for the three things that `JSON.parse` lets through and a registry must
 * not: nesting that blocks the process, a key given twice (the last one wins here, the first one elsewhere), and keys
 * that differ only in case (`mediaType` and `MediaType` are one field to clients written in Go, two to us). Each would
 * let one document mean two things to two readers.
 */
export type JsonFault =
  | { readonly kind: 'too deep' | 'not JSON' }
  /** The key as it stands where it is given again. */
  | { readonly kind: 'duplicate key'; readonly key: string }

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const colon = 0x3a

/** The first fault found, or undefined. Linear in the text; it remembers only the keys of the objects still open. */
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

/** The position behind the closing quote of the string that opens at `start`, or -1. */
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

/** Two keys that fold to one are the same field to Go's decoder; it folds two letters beyond ASCII too. */
export function foldKey(key: string): string {
  return key.toLowerCase().replaceAll('\u017f', 's').replaceAll('\u212a', 'k')
}

/** The key of a quoted text, escapes resolved. */
function unquote(quoted: string): string | undefined {
  try {
    const key: unknown = JSON.parse(quoted)
    return typeof key === 'string' ? key : undefined
  } catch {
    return undefined
  }
}
