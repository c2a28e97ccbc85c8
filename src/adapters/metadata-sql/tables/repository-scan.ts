import { fixedPrefixOf, type RepositoryPattern } from '../../../oci/repository-pattern.ts'

/** Names to look up one by one. */
export interface NameLookUp {
  readonly names: readonly string[]
}

/** A range of the index of names. The patterns select names within the range. */
export interface NameRange {
  readonly from: string
  readonly before: string
  readonly patterns: readonly RepositoryPattern[]
}

/**
 * Plans how to find all names after `after` that match a pattern. The steps are in the order of the names and do not overlap,
 * so their results only have to be joined. The index between two ranges is not read: two prefixes that are far apart cost no
 * more than two neighbours.
 */
export function planScan(within: readonly RepositoryPattern[], after: string): (NameLookUp | NameRange)[] {
  const withStar = within.filter((pattern) => pattern.includes('*'))
  const prefixes = dropCovered(withStar.map(fixedPrefixOf).toSorted())
  const single = new Set(within.filter((pattern) => !pattern.includes('*')))
  const names = [...single].filter((name) => name > after && !prefixes.some((prefix) => name.startsWith(prefix)))
  const steps: (NameLookUp | NameRange)[] = []
  let remaining = names.toSorted()
  for (const prefix of prefixes) {
    // Every character of a name sorts between the exclamation mark and the tilde.
    const [from, before] = [`${after}!` > prefix ? `${after}!` : prefix, `${prefix}~`]
    if (from >= before) continue
    const earlier = remaining.filter((name) => name < prefix)
    if (earlier.length > 0) steps.push({ names: earlier })
    remaining = remaining.slice(earlier.length)
    steps.push({ from, before, patterns: within.filter((pattern) => pattern.startsWith(prefix)) })
  }
  if (remaining.length > 0) steps.push({ names: remaining })
  return steps
}

/** Drops each prefix that begins with another one, which covers its names. The prefixes are sorted. */
function dropCovered(prefixes: readonly string[]): string[] {
  const kept: string[] = []
  for (const prefix of prefixes) {
    const last = kept.at(-1)
    if (last === undefined || !prefix.startsWith(last)) kept.push(prefix)
  }
  return kept
}
