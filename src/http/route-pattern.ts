/** The named parts of a path. */
export type PathValues = Readonly<Record<string, string>>

/** A parsed pattern. */
export interface RoutePattern {
  readonly text: string
  /** The segments of the pattern, without a leading `{name}`. */
  readonly tail: readonly Segment[]
  /** Whether the pattern begins with `{name}`, which matches one or more segments. */
  readonly hasName: boolean
}

type Segment = { readonly literal: string } | { readonly value: string }

/**
 * For example `/{name}/manifests/{reference}`. `{name}` may contain slashes and words such as `manifests` or `tags`, so
 * a path is matched from its end: the segments before the fixed tail are the name.
 */
export function parsePattern(text: string): RoutePattern {
  const segments = text.split('/').slice(1)
  const hasName = segments[0] === '{name}'
  const tail = (hasName ? segments.slice(1) : segments).map((segment) =>
    segment.startsWith('{') ? { value: segment.slice(1, -1) } : { literal: segment },
  )
  return { text, tail, hasName }
}

/** The values, or undefined if the path does not match. `segments` are the segments after the mount. */
export function matchPattern(pattern: RoutePattern, segments: readonly string[]): PathValues | undefined {
  const { tail, hasName } = pattern
  const start = segments.length - tail.length
  if (hasName ? start < 1 : start !== 0) return undefined
  // Every request tries several patterns, and most do not match: nothing is allocated before a match is certain.
  for (let index = 0; index < tail.length; index += 1) {
    const expected = tail[index]
    const segment = segments[start + index]
    if (expected !== undefined && ('literal' in expected ? segment !== expected.literal : segment === ''))
      return undefined
  }
  return takeValues(pattern, segments, start)
}

function takeValues({ tail, hasName }: RoutePattern, segments: readonly string[], start: number): PathValues {
  const values: Record<string, string> = {}
  for (let index = 0; index < tail.length; index += 1) {
    const expected = tail[index]
    if (expected !== undefined && 'value' in expected) values[expected.value] = segments[start + index] ?? ''
  }
  if (hasName) values['name'] = segments.slice(0, start).join('/')
  return values
}
