/** The named parts of a path. */
export type PathValues = Readonly<Record<string, string>>

/** A parsed pattern. */
export interface RoutePattern {
  readonly text: string
  /** What comes before `{name}`. Empty if there is no `{name}`. */
  readonly head: string
  /** The segments after `{name}`. All segments if there is no `{name}`. */
  readonly tail: readonly Segment[]
  /** Whether the pattern contains `{name}`, which matches one or more segments. */
  readonly hasName: boolean
}

type Segment = { readonly literal: string } | { readonly value: string }

/**
 * For example `/{name}/manifests/{reference}`. `{name}` may contain slashes and words such as `manifests` or `tags`, so
 * a path is matched from its end: the segments before the fixed tail are the name.
 */
export function parsePattern(text: string): RoutePattern {
  const nameAt = text.indexOf('/{name}')
  const hasName = nameAt !== -1
  const segments = (hasName ? text.slice(nameAt + '/{name}'.length) : text).split('/').slice(1)
  const tail = segments.map((segment) =>
    segment.startsWith('{') ? { value: segment.slice(1, -1) } : { literal: segment },
  )
  return { text, head: hasName ? text.slice(0, nameAt) : '', tail, hasName }
}

/**
 * The values, or undefined if the path does not match. `from` is the position of the slash that the pattern begins with.
 * Every request tries several patterns, and most do not match: nothing is allocated before a match is certain.
 */
export function matchPattern(pattern: RoutePattern, path: string, from: number): PathValues | undefined {
  const { head, tail, hasName } = pattern
  const start = from + head.length
  if (head !== '' && !(path.startsWith(head, from) && path[start] === '/')) return undefined
  let end = path.length
  for (let index = tail.length - 1; index >= 0; index -= 1) {
    const expected = tail[index]
    const slash = end > start ? path.lastIndexOf('/', end - 1) : -1
    if (slash < start || expected === undefined) return undefined
    const length = end - slash - 1
    const isMatch =
      'literal' in expected
        ? length === expected.literal.length && path.startsWith(expected.literal, slash + 1)
        : length > 0
    if (!isMatch) return undefined
    end = slash
  }
  if (hasName ? end <= start : end !== start) return undefined
  return takeValues(pattern, path, start)
}

function takeValues({ tail, hasName }: RoutePattern, path: string, start: number): PathValues {
  const values: Record<string, string> = {}
  let end = path.length
  for (let index = tail.length - 1; index >= 0; index -= 1) {
    const expected = tail[index]
    const slash = path.lastIndexOf('/', end - 1)
    if (expected !== undefined && 'value' in expected) values[expected.value] = path.slice(slash + 1, end)
    end = slash
  }
  if (hasName) values['name'] = path.slice(start + 1, end)
  return values
}
