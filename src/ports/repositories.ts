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

/** A locked repository. */
export interface OpenRepository extends RepositoryRow {
  /** Whether it has a manifest. This does not change before the transaction ends, except by the transaction itself. */
  readonly isImage: boolean
}

/** The repositories of an account. A repository without manifests is no image yet, and is in no list. */
export interface Repositories {
  find(repositoryKey: RepositoryKey): Promise<RepositoryRow | undefined>

  /** Returns the repository. Creates it if it does not exist. */
  ensure(repositoryKey: RepositoryKey): Promise<OpenRepository>

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

  /** Inside a transaction that has added the first manifest of the repository. */
  markAsImage(repository: RepositoryRow): Promise<void>

  /**
   * Inside a transaction that will remove at most `count` manifests, before it locks manifests and tags. If the repository has
   * few manifests, it waits for pushes into the repository, and delays new ones until the transaction ends. So no push can come
   * between the look for the last manifest and its consequence in `unmarkIfEmpty`.
   */
  lockForRemoval(repository: RepositoryRow, count: number): Promise<void>

  /** Inside a transaction that has removed a manifest. If it was the last one, the repository is no image any more. */
  unmarkIfEmpty(repository: RepositoryRow): Promise<void>
}
