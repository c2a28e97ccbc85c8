import { isRepositoryName, type RepositoryName } from './names.ts'

/**
 * A repository name, or a name with `*` for any text, also with slashes: `team/*`. Only the functions here create it.
 */
export type RepositoryPattern = string & { readonly __brand: 'RepositoryPattern' }

// Each star multiplies the work of a matcher that backtracks, such as LIKE in SQL.
const starsMax = 4

/** Undefined if the text is no pattern, or no repository name can match it. */
export function parseRepositoryPattern(text: string): RepositoryPattern | undefined {
  if (text.includes('**') || text.split('*').length - 1 > starsMax) return undefined
  // A letter fits beside any character of a name. So if any text makes a valid name, a letter does.
  return isRepositoryName(text.replaceAll('*', 'a')) ? toPattern(text) : undefined
}

/** The pattern that matches only this repository. */
export function patternOf(name: RepositoryName): RepositoryPattern {
  return toPattern(name)
}

export function matchesPattern(pattern: RepositoryPattern, name: RepositoryName): boolean {
  const parts = pattern.split('*')
  const first = parts[0] ?? ''
  const last = parts.at(-1) ?? ''
  if (parts.length === 1) return name === first
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false
  // The leftmost match of each part leaves the most text for the next part, so no backtracking is needed.
  let from = first.length
  const end = name.length - last.length
  for (const part of parts.slice(1, -1)) {
    const at = name.indexOf(part, from)
    if (at === -1 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}

/** The prefix of all matching names. */
export function fixedPrefixOf(pattern: RepositoryPattern): string {
  return pattern.split('*', 1)[0] ?? ''
}

function toPattern(text: string): RepositoryPattern {
  return text as RepositoryPattern
}
