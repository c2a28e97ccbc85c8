import type { Digest } from '../oci/digest.ts'
import type { StorageKey, UnfinishedObject } from './blob-store.ts'
import type { RepositoryRow, Scope } from './repositories.ts'

/** Names an upload session to its client: an unguessable id, never part of a path or key. */
export type UploadId = string & { readonly __brand: 'UploadId' }

/** An unfinished blob. `object.sizeBytes` is what was acknowledged: the truth after any crash. */
export interface Upload {
  readonly id: UploadId
  readonly repository: RepositoryRow
  readonly storageKey: StorageKey
  readonly object: UnfinishedObject
  /**
   * The SHA-256 of those bytes, if one unbroken chain of writers hashed them: who closes the upload elsewhere, and brings
   * nothing more, need not read them again.
   */
  readonly receivedDigest: Digest | undefined
  /** Counts its writers: one that lost its turn can no longer record anything. */
  readonly epoch: number
}

/**
 * How a session stands: still open, or finished as this digest a while ago. `closing`: a writer has the turn now and closes
 * the session as this digest.
 */
export type UploadState = { readonly open: Upload; readonly closing?: Digest | undefined } | { readonly done: Digest }

/** Whose session: one of another repository or principal does not exist for this caller. */
export interface UploadOwner extends Scope {
  readonly subject: string
}

/** How many sessions are open in one repository: of all callers, and of one. */
export interface OpenUploads {
  readonly ofRepository: number
  readonly ofSubject: number
}

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
  /** Since it was last claimed, renewed or recorded. */
  readonly idleMs: number
  /** Whether a request has the turn now. */
  readonly isWritten: boolean
}

export interface Uploads {
  /** Opens a session. With `turnMs` above 0 its maker has the first turn to write, as if it had claimed it. */
  create(repository: RepositoryRow, subject: string, id: UploadId, key: StorageKey, turnMs: number): Promise<Upload>

  find(owner: UploadOwner, id: UploadId): Promise<UploadState | undefined>

  /**
   * Takes the turn to write: the epoch grows, and nobody else can take it before `turnMs` is over or the turn is given
   * back. `undefined` when there is no such open session or another writer has its turn. The session is as young as its
   * newest turn. `closing`: the digest with which the writer is going to close the session, for others to see.
   */
  claimTurn(owner: UploadOwner, id: UploadId, turnMs: number, closing?: Digest): Promise<Upload | undefined>

  /** Keeps the turn for another `turnMs`; false when it was lost, or the upload is finished. */
  renewTurn(upload: Upload, turnMs: number): Promise<boolean>

  /** Records what was made durable and gives the turn back; false, and nothing recorded, when the turn was lost. */
  releaseTurn(upload: Upload, object: UnfinishedObject, receivedDigest: Digest | undefined): Promise<boolean>

  /**
   * Ends every turn. For a server that has just begun and is the only one of its stores: whoever had a turn is dead, and
   * their clients need not wait for it to run out.
   */
  releaseAllTurns(): Promise<void>

  /**
   * Whether the upload is unfinished and the turn still ours, told after every transaction that might finish it has come to
   * its end: one whose outcome was lost on the way may still be running.
   */
  holdsTurn(upload: Upload): Promise<boolean>

  /**
   * Counts the open sessions of the repository. A session of one request (`begin` with `turnMs` above 0) does not count
   * while its maker still has the first turn.
   */
  countOpen(repository: RepositoryRow, subject: string): Promise<OpenUploads>

  /** For operators: at most `limit` open sessions, those first that were idle longest. */
  listOpen(filter: UploadFilter, limit: number): Promise<ListedUpload[]>

  // The rest is for transactions.

  /**
   * Turns the session into a note that it ended as `digest`, so that a repeated closing request gets the same answer.
   * Its key is free to stand in another row. False when the turn was lost.
   */
  commit(upload: Upload, digest: Digest): Promise<boolean>

  /** Removes the open session, whoever writes to it; its key goes to the trash. False when there was none. */
  remove(owner: UploadOwner, id: UploadId): Promise<boolean>

  /** For operators: as `discard`, whoever owns the session. */
  removeAny(id: UploadId): Promise<boolean>
}
