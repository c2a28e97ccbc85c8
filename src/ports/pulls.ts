import type { Tag } from '../oci/names.ts'
import type { RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** Which manifest a read has found, and whether its pull is recorded. Reads of one cached row share the object. */
export interface PullMark {
  readonly repositoryId: RowId
  readonly manifestId: RowId
  /** The period in which the recorder has last noted a pull of the row. Only the recorder sets it. */
  notedIn: number
}

/** A pull of a manifest, by a tag or by its digest. */
export interface Pull {
  readonly repository: RepositoryRow
  readonly manifestId: RowId
  /** Undefined: by digest. */
  readonly tag: Tag | undefined
  /** Milliseconds since 1970. */
  readonly pulledAt: number
}

/**
 * When tags, manifests and repositories were last pulled. The times are approximate: of all pulls in one period, on any
 * server, the store keeps one. The time of a tag is removed with the tag, and the time of a manifest with the manifest.
 */
export interface Pulls {
  /**
   * Records pulls. A period begins at each multiple of `periodMs`; if the store has a time of the same period or a later
   * one, it does not change. Skips tags and manifests that do not exist, and those that another transaction is removing.
   */
  record(pulls: readonly Pull[], periodMs: number): Promise<void>

  /** The last pulls of these tags. A tag that was never pulled is missing. */
  findOfTags(repository: RepositoryRow, tags: readonly Tag[]): Promise<ReadonlyMap<string, number>>

  /** The last pulls of these manifests, by any tag or by digest. A manifest that was never pulled is missing. */
  findOfManifests(repository: RepositoryRow, manifestIds: readonly RowId[]): Promise<ReadonlyMap<RowId, number>>

  /** The last pull from the repository. */
  findOfRepository(repository: RepositoryRow): Promise<number | undefined>
}
