import type { ManifestSummary } from './manifests.ts'
import type { RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/**
 * A manifest that nothing leads to: no tag points to it, no index lists it, and it has no subject that exists. It can be
 * pulled by its digest only.
 */
export interface UntaggedManifest extends ManifestSummary {
  readonly id: RowId
  readonly artifactType: string | undefined
  /** Since when, in milliseconds since 1970 by the clock of the metadata store. */
  readonly since: number
  /** Whether a tag pointed to it before. */
  readonly wasTagged: boolean
}

/** The place of a manifest in the list. */
export interface UntaggedPosition {
  readonly since: number
  readonly id: RowId
}

export interface UntaggedBatch<Manifest> {
  readonly manifests: readonly Manifest[]
  /** Where the next batch begins. Undefined if there are no more candidates. */
  readonly next: UntaggedPosition | undefined
}

/** An untagged manifest of any account. */
export interface DueManifest extends UntaggedPosition {
  readonly repository: RepositoryRow
  readonly wasTagged: boolean
  /** Time since `since`, by the clock of the metadata store. */
  readonly ageMs: number
}

/**
 * Untagged manifests. The store keeps a list of candidates: manifests that were pushed without a tag, or lost a tag, an index
 * or a subject. A candidate may have got another tag since then, so every method checks the candidates that it reads.
 */
export interface Untagged {
  /** Looks at the next `limit` candidates of the repository, those that have waited longest first. */
  list(
    repository: RepositoryRow,
    after: UntaggedPosition | undefined,
    limit: number,
  ): Promise<UntaggedBatch<UntaggedManifest>>

  // The following methods are for transactions.

  /** After a push without a tag. */
  add(repository: RepositoryRow, manifestId: RowId): Promise<void>

  /** Before the removal of a manifest: adds the manifests that it lists, and those whose subject it is. */
  addRelated(repository: RepositoryRow, manifest: { readonly id: RowId; readonly digest: string }): Promise<void>

  /**
   * Looks at the next `limit` candidates, those that have waited longest first. Takes a candidate off the list if a tag
   * points to it, or if an index or a subject leads to it and it never had a tag. The removal of its last tag, index or
   * subject adds it again. Returns the untagged manifests of enabled accounts.
   */
  check(after: UntaggedPosition | undefined, limit: number): Promise<UntaggedBatch<DueManifest>>

  /**
   * Locks the manifest and returns its digest if it is still untagged, and its `since` has not changed. No other
   * transaction can point a tag to it or list it before this one ends.
   */
  lock(manifest: DueManifest): Promise<string | undefined>
}
