import { fixedPrefixOf, type RepositoryPattern } from '../../../oci/repository-pattern.ts'

/** Names to look up one by one. */
export interface NamedStep {
  readonly names: readonly string[]
}

/** A stretch of the index of names to read, in which these patterns choose. */
export interface Stretch {
  readonly from: string
  readonly before: string
  readonly patterns: readonly RepositoryPattern[]
}

/**
 * What has to be read to find all names behind `after` that match a pattern, in the order of the names. No two stretches
 * overlap, and every name stands in one step: who takes them one behind the other has merged them. So folders that lie far
 * apart cost no more than folders side by side: nobody reads through what is between them.
 */
export function planNames(within: readonly RepositoryPattern[], after: string): (NamedStep | Stretch)[] {
  const starred = within.filter((pattern) => pattern.includes('*'))
  const prefixes = dropCovered(starred.map(fixedPrefixOf).toSorted())
  const single = new Set(within.filter((pattern) => !pattern.includes('*')))
  const names = [...single].filter((name) => name > after && !prefixes.some((prefix) => name.startsWith(prefix)))
  const steps: (NamedStep | Stretch)[] = []
  let left = names.toSorted()
  for (const prefix of prefixes) {
    // Every letter of a name lies between the exclamation mark and the tilde.
    const [from, before] = [`${after}!` > prefix ? `${after}!` : prefix, `${prefix}~`]
    if (from >= before) continue
    const first = left.filter((name) => name < prefix)
    if (first.length > 0) steps.push({ names: first })
    left = left.slice(first.length)
    steps.push({ from, before, patterns: within.filter((pattern) => pattern.startsWith(prefix)) })
  }
  if (left.length > 0) steps.push({ names: left })
  return steps
}

/** Of sorted prefixes, those that do not begin with another: that one's names are the other's too. */
function dropCovered(prefixes: readonly string[]): string[] {
  const kept: string[] = []
  for (const prefix of prefixes) {
    const last = kept.at(-1)
    if (last === undefined || !prefix.startsWith(last)) kept.push(prefix)
  }
  return kept
}
