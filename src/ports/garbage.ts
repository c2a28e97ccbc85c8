import type { OrphanedObject, RemovableObject, StorageKey } from './blob-store.ts'
import type { RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** A blob that the collector looks at. */
export interface BlobCandidate {
  readonly accountId: RowId
  readonly blobId: RowId
  readonly storageKey: StorageKey
  readonly sizeBytes: number
}

/** A blob that has been in the queue for at least the lease time. */
export interface DueBlob extends BlobCandidate {
  /** Its place in the queue, in milliseconds since 1970. */
  readonly queuedAt: number
  /** Whether its account is disabled. The content of a disabled account is not collected. */
  readonly isDisabled: boolean
  /** Whether more repositories link the blob than the limit of `lockNextDue`. */
  readonly hasMoreLinks: boolean
}

/** The result of `removeUnusedLinks`. */
export interface LinkBatch {
  /** The last repository of the batch. Undefined if there are no more links. */
  readonly next: RowId | undefined
  /** Whether unused links were skipped because other transactions hold them. They must be looked at again. */
  readonly hasSkipped: boolean
}

/** The result of `removeEmptyRepositories`. */
export interface RepositoryBatch {
  readonly removed: number
  /** The last repository of the batch. Undefined if there are no more repositories. */
  readonly next: RepositoryRow | undefined
}

/** How old things must be before the collector may remove them, by the clock of the metadata store. */
export interface GarbageAges {
  readonly leaseMs: number
  readonly quarantineMs: number
  readonly uploadIdleMs: number
  readonly uploadMaxMs: number
  /** How long a committed session is kept for a repeated closing request. */
  readonly uploadDoneMs: number
  /** How long untagged manifests are kept. 0: for ever. */
  readonly untaggedMs: number
  /** How long deleted manifests can be undeleted. */
  readonly undeleteMs: number
  /** How long the moves of tags are kept. */
  readonly tagHistoryMs: number
  /** How long a trashed object belongs to the collector that claimed it. */
  readonly holdMs: number
}

/**
 * Work that one of many processes does in each period. The names are stored, in the table `turns`. This table has nothing
 * to do with the turn of an upload. It keeps its name, because a new one would break a promise: during an upgrade,
 * servers of the previous version work on the same database, and their sweeps would fail.
 */
export type PeriodicWork = 'sweep' | 'whole sweep' | 'retention' | 'whole retention'

/** The result of a dry run. */
export interface GarbageForecast {
  readonly blobs: number
  readonly bytes: number
  readonly uploads: number
  readonly trashed: number
}

/**
 * The rows of the collector: a queue of blobs that may be unused, and the trash, the keys of objects whose bytes are to
 * be removed. Several collectors can run at once, in one process or in several.
 *
 * The collector removes a blob in this order: lock it, then check in a second statement that nothing uses it, then
 * remove its rows and put its key into the trash, all in one transaction. The foreign keys refuse the removal of a blob
 * that is in use.
 */
export interface Garbage {
  // The following methods are for transactions.

  /**
   * The next queued blob whose lease time is over. Locks it: no other transaction can start to use it before this one
   * ends. Skips blobs that other transactions hold, and those that were queued before `queuedFrom`, which is where the
   * last call ended.
   */
  lockNextDue(leaseMs: number, queuedFrom: number, linksMax: number): Promise<DueBlob | undefined>

  /** Locks the blob again. False if its place in the queue has changed, or another transaction holds it. */
  lockDue(blob: DueBlob): Promise<boolean>

  /**
   * Moves the blob to the end of the queue. Returns its new place; undefined if its place had changed. Needs no lock.
   */
  requeue(blob: DueBlob): Promise<number | undefined>

  /**
   * Whether a manifest, or a copy of a deleted one, names the blob, or a link to it has a running lease. Must be a statement of its own after the
   * lock, so that it sees what other transactions committed while this one waited for the lock.
   */
  isInUse(candidate: BlobCandidate, leaseMs: number): Promise<boolean>

  /**
   * Looks at the next `limit` links of the blob, in the order of the repositories, after `after`. Removes those whose
   * lease is over and whose repository has no manifest that names the blob. Needs no lock of the blob. Skips links that
   * other transactions hold.
   */
  removeUnusedLinks(candidate: BlobCandidate, leaseMs: number, after: RowId, limit: number): Promise<LinkBatch>

  /**
   * Keeps a blob that is in use. Takes it off the queue if a manifest or a copy of a deleted one names it, because
   * removing that one queues it again. Otherwise moves it to the end of the queue.
   */
  keep(candidate: BlobCandidate): Promise<void>

  /**
   * Removes the blob and its links, and puts its key into the trash unless the blob is inline. Rejects if the blob is in
   * use.
   */
  moveToTrash(candidate: BlobCandidate): Promise<void>

  /**
   * Removes at most `limit` upload sessions: open ones that are idle or too old, whose keys go to the trash
   * unless they are unclaimed, and committed ones that are old enough. Skips sessions whose turn a request has, sessions of disabled accounts, and
   * rows that other transactions hold. Returns the number of removed sessions.
   */
  expireUploads(ages: GarbageAges, limit: number): Promise<number>

  /** Puts an object into the trash that no row names. Rejects if a blob or an upload names its key. */
  trash(object: RemovableObject): Promise<void>

  /**
   * Puts those objects into the trash that no blob, no unfinished upload, no copy of an unfinished move and no row of
   * the trash names. Returns their number.
   */
  trashOrphans(objects: readonly OrphanedObject[]): Promise<number>

  /**
   * Looks at the next repositories without manifests after `after`, in a fixed order. Removes those that have no links,
   * uploads, moves of tags and deleted manifests, are at least `minAgeMs` old, and belong to an enabled account.
   */
  removeEmptyRepositories(minAgeMs: number, after: RepositoryRow | undefined): Promise<RepositoryBatch>

  // Each of the following methods is atomic and is called outside of transactions.

  /**
   * Claims at most `limit` trashed objects whose quarantine is over. For `holdMs` no other caller gets them. If the
   * caller dies, they can be claimed again afterwards.
   */
  claimTrashed(quarantineMs: number, holdMs: number, limit: number): Promise<RemovableObject[]>

  /** Removes an object from the trash after its bytes were removed. */
  removeTrashed(key: StorageKey): Promise<void>

  /**
   * Claims a piece of periodic work for `everyMs`. False, without a change, while an earlier claim lasts, also by the
   * same caller. So one of many processes does the work in each period. With `everyMs` 0 it only tests whether the
   * earlier claim is over.
   */
  claimWork(work: PeriodicWork, everyMs: number): Promise<boolean>

  /** What a collection with these ages would remove now. Changes nothing. */
  forecast(ages: GarbageAges): Promise<GarbageForecast>
}
