import type { RepositoryName } from '../oci/names.ts'
import type { RepositoryPattern } from '../oci/repository-pattern.ts'
import type { RowId } from './row-id.ts'

/** The account and the name that a request uses for a repository. The repository may not exist. */
export interface RepositoryKey {
  readonly accountId: RowId
  readonly repository: RepositoryName
}

/** A repository that exists. */
export interface RepositoryRow {
  readonly accountId: RowId
  readonly id: RowId
}

/** The repositories of an account. A repository without manifests is no image yet, and is in no list. */
export interface Repositories {
  find(repositoryKey: RepositoryKey): Promise<RepositoryRow | undefined>

  /** Returns the repository. Creates it if it does not exist. */
  ensure(repositoryKey: RepositoryKey): Promise<RepositoryRow>

  /**
   * At most `limit` names after `after`, in byte order, of repositories that have a manifest. With `patterns`: only
   * those that match one of them.
   */
  list(
    accountId: RowId,
    after: string | undefined,
    limit: number,
    patterns?: readonly RepositoryPattern[],
  ): Promise<RepositoryName[]>

  /**
   * Inside a transaction. Takes an exclusive lock of the repository until the transaction ends, and waits for another
   * transaction that has it. Transactions that do not call this are not delayed.
   */
  lock(repository: RepositoryRow): Promise<void>

  /** Inside a transaction. Changes the number of manifests; returns the new number. */
  changeManifestCount(repository: RepositoryRow, change: 1 | -1): Promise<number>
}
