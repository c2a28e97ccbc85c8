/** The named parts of a path. */
export type PathValues = Readonly<Record<string, string>>

/** A pattern, ready to be matched against the segments of a path. */
export interface RoutePattern {
  readonly text: string
  /** Segments from the end of the pattern, `{name}` left out if it leads. */
  readonly tail: readonly Segment[]
  /** Begins with `{name}`, which takes one or more segments. */
  readonly hasName: boolean
}

type Segment = { readonly literal: string } | { readonly value: string }

/**
 * `/{name}/manifests/{reference}`. `{name}` may hold slashes and words like `manifests` or `tags`, so a path is matched
 * from its end: what is left in front of the fixed tail is the name.
 */
export function parsePattern(text: string): RoutePattern {
  const segments = text.split('/').slice(1)
  const hasName = segments[0] === '{name}'
  const tail = (hasName ? segments.slice(1) : segments).map((segment) =>
    segment.startsWith('{') ? { value: segment.slice(1, -1) } : { literal: segment },
  )
  return { text, tail, hasName }
}

/** The values, or undefined when the path is another one. `segments` are those behind the mount. */
export function matchPattern(pattern: RoutePattern, segments: readonly string[]): PathValues | undefined {
  const { tail, hasName } = pattern
  const start = segments.length - tail.length
  if (hasName ? start < 1 : start !== 0) return undefined
  // Nearly every pattern is another one's, and every request asks several: nothing is made before it is known.
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
  for (const [index, expected] of tail.entries()) {
    if ('value' in expected) values[expected.value] = segments[start + index] ?? ''
  }
  if (hasName) values['name'] = segments.slice(0, start).join('/')
  return values
}
