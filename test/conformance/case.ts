// One case of the official suite: what it is called there, and our check of it.
import type { Repository } from './client.ts'

export interface Case {
  /** A sentence that says what the registry does. */
  readonly title: string
  /** The case's path in the official suite's results, without "OCI Conformance Test". */
  readonly official: string
  /** Throws if the registry does anything else. The repository is a new one. */
  readonly check: (repository: Repository) => Promise<void>
}

/** A repository's name that no other case has. */
export function repositoryName(prefix: string, { title, official }: Case): string {
  const slug = `${official}-${title}`.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return `conformance/${prefix}/${slug.slice(0, 160).replace(/-$/, '')}`
}
