import type { Digest } from '../oci/digest.ts'
import type { StorageKey, UnfinishedObject } from './blob-store.ts'
import type { Quota } from './quotas.ts'
import type { RepositoryKey, RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** The id of an upload session. It cannot be guessed, and is never a part of a file name or a storage key. */
export type UploadId = string & { readonly __brand: 'UploadId' }

/** An open session. */
export interface Upload {
  readonly id: UploadId
  readonly repository: RepositoryRow
  readonly storageKey: StorageKey
  /** The durable bytes. After a crash, the upload continues behind them. `find` leaves out inline bytes of a claimed session. */
  readonly object: UnfinishedObject
  /**
   * The SHA-256 digest of these bytes, if an unbroken chain of writers computed it. Then they need not be read again.
   */
  readonly receivedDigest: Digest | undefined
  /** The fencing token. It increases with each claim, and with each `recordUnclaimed`. */
  readonly epoch: number
  /** No request has ever claimed the turn. So no object was opened under the storage key, and all bytes are inline. */
  readonly isUnclaimed: boolean
}

/**
 * `open`: bytes can be appended. `closing`: the digest with which the present writer closes the session. `done`: the
 * session was committed with this digest.
 */
export type UploadState = { readonly open: Upload; readonly closing?: Digest | undefined } | { readonly done: Digest }

/** The owner of a session: one caller in one repository. For other callers the session does not exist. */
export interface UploadOwner extends RepositoryKey {
  readonly subject: string
  /** The quota of the account. Undefined: none. */
  readonly quota?: Quota | undefined
}

/** Numbers of open sessions. */
export interface OpenUploads {
  readonly ofRepository: number
  /** Those of one caller in the repository. */
  readonly ofSubject: number
}

/** Undefined: any. */
export interface UploadFilter {
  readonly account: string | undefined
  readonly repository: string | undefined
}

/** An open session as an operator sees it. */
export interface ListedUpload {
  readonly id: UploadId
  readonly account: string
  readonly repository: string
  readonly subject: string
  readonly sizeBytes: number
  readonly ageMs: number
  /** The time since its turn was last claimed, renewed or released. */
  readonly idleMs: number
  /** Whether a request has the turn now. */
  readonly isWritten: boolean
}

/** An open session as its account sees it. */
export interface OwnUpload extends Omit<ListedUpload, 'account' | 'ageMs' | 'idleMs'> {
  /** Milliseconds since 1970, by the clock of the metadata store. */
  readonly startedAt: number
  /** When the turn was last claimed, renewed or released. */
  readonly touchedAt: number
}

/**
 * Upload sessions.
 *
 * A turn is the exclusive, time-limited right to write to a session: a lease with a fencing token, the epoch. A claim
 * succeeds only if the last turn has ended, by the clock of the store, and it increases the epoch. `renewTurn`,
 * `releaseTurn`, `commit` and `holdsTurn` compare the epoch of the given `Upload` with the row, so a writer that has
 * lost its turn changes nothing. They do not compare the time: an expired turn that no other request has claimed is
 * still held.
 *
 * A request whose bytes stay inline needs no turn as long as the session is unclaimed. It passes the `Upload` that it
 * has read to `recordUnclaimed` or `commit`. These change the row only if the session is unchanged since then.
 */
export interface Uploads {
  /** Creates an open session. With `turnMs` above 0 the caller has the first turn. */
  create(repository: RepositoryRow, subject: string, id: UploadId, key: StorageKey, turnMs: number): Promise<Upload>

  find(owner: UploadOwner, id: UploadId): Promise<UploadState | undefined>

  /**
   * Claims the turn for `turnMs`. Undefined if there is no such open session, or another request has the turn. Other
   * requests can read `closing` from the state of the session.
   */
  claimTurn(owner: UploadOwner, id: UploadId, turnMs: number, closing?: Digest): Promise<Upload | undefined>

  /**
   * Lets the turn last `turnMs` from now. With `turnMs` 0 it ends the turn, and records no bytes. False, without a
   * change, if the turn is lost or the session is not open.
   */
  renewTurn(upload: Upload, turnMs: number): Promise<boolean>

  /**
   * Records the durable bytes, and inline bytes themselves, and ends the turn, in one step. False, without a change, if
   * the turn is lost or the session is not open.
   */
  releaseTurn(upload: Upload, object: UnfinishedObject, receivedDigest: Digest | undefined): Promise<boolean>

  /**
   * Records inline bytes in an unclaimed session. `object` has all bytes, those before and the new ones. False, without a
   * change, if the session has changed since `upload` was read.
   */
  recordUnclaimed(upload: Upload, object: UnfinishedObject, receivedDigest: Digest): Promise<boolean>

  /** Ends all turns. For a server that has just started, and is the only one of its stores: all writers are dead. */
  releaseAllTurns(): Promise<void>

  /**
   * Whether the session is open and the turn is not lost. Waits for a running transaction that may commit the session,
   * because the caller may have lost the answer of that transaction.
   */
  holdsTurn(upload: Upload): Promise<boolean>

  /** Counts open sessions. A session whose creator has the first turn does not count before that turn ends. */
  countOpen(repository: RepositoryRow, subject: string): Promise<OpenUploads>

  /** For operators: at most `limit` open sessions, the longest idle first. */
  listOpen(filter: UploadFilter, limit: number): Promise<ListedUpload[]>

  /** Looks at the next `limit` sessions of the account after `after`, by id, and returns the open ones. */
  listOfAccount(
    accountId: RowId,
    after: string,
    limit: number,
  ): Promise<{ readonly uploads: readonly OwnUpload[]; readonly next: string | undefined }>

  /** The number and the bytes of the open sessions of the account. Looks at `limit` sessions; `isExact`: at all. */
  measureOpen(
    accountId: RowId,
    limit: number,
  ): Promise<{ readonly count: number; readonly bytes: number; readonly isExact: boolean }>

  // The following methods are for transactions.

  /**
   * Ends the session as committed with `digest`. The row stays for a while, so that a repeated closing request gets the
   * same answer. It no longer names the storage key. False, without a change, if the turn is lost, if the session is not
   * open, or if `upload` is unclaimed and the session has changed.
   */
  commit(upload: Upload, digest: Digest): Promise<boolean>

  /**
   * Removes an open session, also while a request writes to it. Its key goes to the trash unless the session is unclaimed.
   * False if there is none.
   */
  remove(owner: UploadOwner, id: UploadId): Promise<boolean>

  /** For operators: as `remove`, for any owner. */
  removeAny(id: UploadId): Promise<boolean>
}
