import type { OrphanedObject, RemovableObject, StorageKey } from './blob-store.ts'
import type { RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** A blob that the collector has locked for a look. */
export interface BlobCandidate {
  readonly accountId: RowId
  readonly blobId: RowId
  readonly storageKey: StorageKey
  readonly sizeBytes: number
}

/** A candidate, and its place in the queue: milliseconds since 1970. */
export interface DueBlob extends BlobCandidate {
  readonly queuedAt: number
  /** Its account's content is left alone for as long as the account is disabled. */
  readonly isDisabled: boolean
  /** More than were asked about. */
  readonly hasMoreLinks: boolean
}

/** What became of some links of a blob. */
export interface LinkBatch {
  /** The last that was looked at; undefined where there are no more. */
  readonly next: RowId | undefined
  /** Some were held by pushes, which may fail: somebody has to look again. */
  readonly hasSkipped: boolean
}

/** What became of some repositories, and where to go on: nowhere if they were the last. */
export interface RepositoryBatch {
  readonly removed: number
  readonly next: RepositoryRow | undefined
}

/** How old things must be before the collector may touch them. Ages are judged by the store's own clock. */
export interface GarbageAges {
  readonly leaseMs: number
  readonly quarantineMs: number
  readonly uploadIdleMs: number
  readonly uploadMaxMs: number
  /** How long a finished session is remembered for a repeated closing request. */
  readonly uploadDoneMs: number
  /** How long what one collector has taken out of the trash is passed over by others: it is removing it, or has died. */
  readonly holdMs: number
}

/** What a dry run reports. */
export interface GarbageForecast {
  readonly blobs: number
  readonly bytes: number
  readonly uploads: number
  readonly trashed: number
}

export interface Garbage {
  // For transactions, one candidate each.

  /**
   * The next queued blob whose lease time is over, locked so that nobody can begin to use it before the transaction
   * ends. Blobs that another transaction is using right now are passed over. What was queued before `queuedFrom` is not
   * looked at: where the last look ended, so that it need not be passed again.
   */
  lockNextDue(leaseMs: number, queuedFrom: number, linksMax: number): Promise<DueBlob | undefined>

  /** Locks the same blob once more; false if it is not queued as it was, or somebody is using it right now. */
  lockDue(blob: DueBlob): Promise<boolean>

  /** Sends a blob to the queue's end, if it is queued as it was. Gives its place there. It need not be locked. */
  requeue(blob: DueBlob): Promise<number | undefined>

  /**
   * Whether anything needs the blob: a manifest, or a link whose lease still runs. Must be asked after the lock, as a
   * statement of its own, so that it sees what was committed while we waited for the lock.
   */
  isInUse(candidate: BlobCandidate, leaseMs: number): Promise<boolean>

  /**
   * Of the blob's next `limit` links, in the order of their repositories and behind `after`, those go whose repository does
   * not use the blob and whose lease is over. The blob need not be locked: a link that a push holds is passed over, and a push
   * that meets one which goes waits for it alone.
   */
  removeUnusedLinks(candidate: BlobCandidate, leaseMs: number, after: RowId, limit: number): Promise<LinkBatch>

  /** Lets a live blob be: off the queue if a manifest names it (the end of that manifest queues it again), else to its end. */
  keep(candidate: BlobCandidate): Promise<void>

  /** Removes the blob's links and row, and moves its key to the trash. The foreign keys refuse it if it is in use. */
  moveToTrash(candidate: BlobCandidate): Promise<void>

  /** Moves the keys of at most `limit` sessions that nobody continues to the trash; forgets finished ones. */
  expireUploads(ages: GarbageAges, limit: number): Promise<number>

  /**
   * Puts bytes that nobody will use into the trash: a duplicate of what the account has already. Rejects when a blob or an
   * upload still names them.
   */
  trash(object: RemovableObject): Promise<void>

  /** Puts those into the trash that nothing names: no blob, no unfinished upload, no trash. Gives their number. */
  trashOrphans(strays: readonly OrphanedObject[]): Promise<number>

  /** Looks at some repositories behind `after`, the same in every round, and removes those that hold nothing any more. */
  removeEmptyRepositories(idleMs: number, after: RepositoryRow | undefined): Promise<RepositoryBatch>

  // Each a statement of its own.

  /**
   * Takes at most `limit` trashed objects whose quarantine is over, for `holdMs`: meanwhile nobody else is given them. Who
   * takes them and dies has not forgotten them.
   */
  claimTrashed(quarantineMs: number, holdMs: number, limit: number): Promise<RemovableObject[]>

  /** Forgets a trashed object: its bytes are gone. */
  removeTrashed(key: StorageKey): Promise<void>

  /** True for one caller in each `everyMs`, however many ask: work of which once is enough. */
  claimWork(work: string, everyMs: number): Promise<boolean>

  /** What a collection with these ages would do now. */
  forecast(ages: GarbageAges): Promise<GarbageForecast>
}
