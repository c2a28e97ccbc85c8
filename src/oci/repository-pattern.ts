import { isRepositoryName, type RepositoryName } from './names.ts'

/** Which repositories: a name, or a name with `*` for any text, slashes included: `team/*`. Made only by its parser. */
export type RepositoryPattern = string & { readonly __brand: 'RepositoryPattern' }

// Each star multiplies what a backtracking reader (SQL's LIKE) may have to try.
const starsMax = 4

/** The pattern, or `undefined` where no repository's name could ever match or the text is none. */
export function parseRepositoryPattern(text: string): RepositoryPattern | undefined {
  if (text.includes('**') || text.split('*').length - 1 > starsMax) return undefined
  // Where any text at all makes a name, this letter does: it goes with whatever stands beside the star.
  return isRepositoryName(text.replaceAll('*', 'a')) ? toPattern(text) : undefined
}

/** The pattern that means this one repository. */
export function patternOf(name: RepositoryName): RepositoryPattern {
  return toPattern(name)
}

export function matchesPattern(pattern: RepositoryPattern, name: RepositoryName): boolean {
  const parts = pattern.split('*')
  const first = parts[0] ?? ''
  const last = parts.at(-1) ?? ''
  if (parts.length === 1) return name === first
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false
  // The leftmost fit of each part leaves the most room for the next, so nothing ever has to be tried twice.
  let from = first.length
  const end = name.length - last.length
  for (const part of parts.slice(1, -1)) {
    const at = name.indexOf(part, from)
    if (at === -1 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}

/** What every matching name begins with. */
export function fixedPrefixOf(pattern: RepositoryPattern): string {
  return pattern.split('*', 1)[0] ?? ''
}

function toPattern(text: string): RepositoryPattern {
  return text as RepositoryPattern
}
