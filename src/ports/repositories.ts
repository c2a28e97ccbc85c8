import type { RepositoryName } from '../oci/names.ts'
import type { RepositoryPattern } from '../oci/repository-pattern.ts'
import type { RowId } from './row-id.ts'

/** A repository as a request names it: whose, and which. */
export interface Scope {
  readonly accountId: RowId
  readonly repository: RepositoryName
}

/** A repository's row, known to exist. */
export interface RepositoryRow {
  readonly accountId: RowId
  readonly id: RowId
}

export interface Repositories {
  find(scope: Scope): Promise<RepositoryRow | undefined>

  /** The repository, made on its first use. */
  ensure(scope: Scope): Promise<RepositoryRow>

  /**
   * Names of the account's repositories that have a manifest, in byte order, after `after`, at most `limit`; where
   * patterns are given, of those that match one. One without manifests is not an image to anybody, so it does not appear.
   */
  list(
    accountId: RowId,
    after: string | undefined,
    limit: number,
    within?: readonly RepositoryPattern[],
  ): Promise<RepositoryName[]>

  /**
   * For transactions: waits until no other transaction holds this lock of the same repository, and holds it until the
   * transaction ends. It does not hold up transactions that only use the repository.
   */
  lock(repository: RepositoryRow): Promise<void>

  /** Adds to the number of its manifests; gives the new number. */
  changeManifestCount(repository: RepositoryRow, change: 1 | -1): Promise<number>
}
