import type { RepositoryName } from '../oci/names.ts'
import type { RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** What a repository holds. */
export interface RepositoryUsage {
  readonly manifests: number
  readonly tags: number
  /** All manifests, and all blobs that the repository links. */
  readonly bytes: number
  /** The part of `bytes` that no other repository shares: the manifests, and blobs that only this repository links. */
  readonly ownedBytes: number
  /** The last push of a manifest, in milliseconds since 1970 by the clock of the store. Undefined: none is known. */
  readonly pushedAt: number | undefined
}

/** What an account holds. */
export interface AccountUsage {
  /** Repositories that have a manifest. */
  readonly images: number
  readonly manifests: number
  readonly tags: number
  /** The sum of `bytes` over all repositories. A blob that several of them link counts once for each. */
  readonly logicalBytes: number
  /** The manifests, and each blob of the account once. Blobs that wait for their collection count too. */
  readonly storedBytes: number
}

/** A repository in a list, with the usage that is added up already. */
export interface ListedRepository extends RepositoryUsage {
  readonly id: RowId
  readonly name: RepositoryName
  readonly createdAt: number
  /** The last pull, as `Pulls` knows it. */
  readonly pulledAt: number | undefined
}

export type RepositoryOrder = 'size' | 'pushed' | 'pulled'

/** The place of a repository in a list by size or by time: that value, and the id. */
export interface RepositoryPosition {
  readonly value: number
  readonly id: RowId
}

/** A part of a list. `next` is where the rest begins; undefined at the end. */
export interface ListedPart<Position> {
  readonly repositories: readonly ListedRepository[]
  readonly next: Position | undefined
}

/** The usage of an account before and after some changes were added up. */
export interface AccountChange {
  readonly accountId: RowId
  readonly account: string
  readonly before: AccountUsage
  readonly after: AccountUsage
}

export interface FoldedChanges {
  readonly count: number
  readonly accounts: readonly AccountChange[]
}

/** Where the count of existing content continues: blobs come before repositories. */
export interface UsagePosition {
  readonly of: 'blobs' | 'repositories'
  readonly after: RowId
}

/**
 * Counts what repositories hold, and corrects the sums. The repositories are read while others change them: all reads of a
 * repository see the same moment, so the difference to the sums of that moment stays right. If two processes count the same
 * repository, one correction is applied.
 */
export interface UsageRecount {
  /** Counts the next repositories after `after`, by id, and returns the last id. Undefined if there are no more. */
  recountNext(after: RowId): Promise<RowId | undefined>
}

/** Bytes that no manifest needs. `isExact` is false if there is more than was looked at. */
export interface WaitingBytes {
  readonly bytes: number
  readonly isExact: boolean
}

/**
 * The usage of repositories and accounts.
 *
 * No push changes a row that other pushes change too. A transaction appends a row with its changes; the store does this by
 * itself, for every change of manifests, tags, links and blobs. `fold` adds the appended rows to the rows of sums. The methods
 * that find the usage of one repository or account add the rows that are not folded yet. So their result is that of the
 * committed transactions, with two exceptions:
 * - `ownedBytes` depends on links of other repositories, and is right when `fold` has returned without rows.
 * - Content that is older than this table is counted by `countBlobs` and `UsageRecount`, in portions.
 *
 * Lists are ordered by the rows of sums, so they may lag behind by what is not folded.
 */
export interface Usage {
  findOfRepository(repository: RepositoryRow): Promise<RepositoryUsage>

  findOfAccount(accountId: RowId): Promise<AccountUsage>

  /** The repositories with a manifest by name, after `after`. Looks at the next `limit` names. */
  listByName(accountId: RowId, after: string | undefined, limit: number): Promise<ListedPart<string>>

  /**
   * The repositories with a manifest, the largest or the latest first, after `after`. Repositories without a pull are the
   * last. Looks at the next `limit` rows.
   */
  listBy(
    order: RepositoryOrder,
    accountId: RowId,
    after: RepositoryPosition | undefined,
    limit: number,
  ): Promise<ListedPart<RepositoryPosition>>

  /** The blobs of the account that no manifest needs. They are collected when their leases end. Looks at `limit` blobs. */
  findWaiting(accountId: RowId, limit: number): Promise<WaitingBytes>

  /** Whether `fold` would find a row. */
  hasChanges(): Promise<boolean>

  // The following methods are for transactions.

  /** Adds at most `limit` appended rows to the sums and removes them. Rows that another transaction folds are skipped. */
  fold(limit: number): Promise<FoldedChanges>

  /** Adds the next `limit` blobs after `after` to the sums, as far as they are not in them. Undefined at the end. */
  countBlobs(after: RowId, limit: number): Promise<RowId | undefined>
}
