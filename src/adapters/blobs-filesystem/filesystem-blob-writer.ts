import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { freeChunk } from '../../lib/byte-source.ts'
import { syncFolder } from '../../lib/durable-files.ts'
import type { Slots } from '../../lib/slots.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { BlobWriter, CompleteObject, StorageKey, UnfinishedObject } from '../../ports/blob-store.ts'
import type { DiskSpace } from '../../ports/disk-space.ts'
import { folderOf, pathOf } from './paths.ts'

/** The file is shorter than what was acknowledged. */
export class TooShort extends Error {
  override readonly name = 'TooShort'
}

/** Chunks are gathered up to this size, because each write has the cost of a thread switch. */
const batchBytes = 512 * 1024

/**
 * After this many bytes, the disk begins to write them while the next ones arrive. Otherwise it would be idle until the
 * upload ends, and the client would wait for it then.
 */
const earlySyncBytes = 16 * 1024 * 1024

/** The store that a writer belongs to. */
export interface WriterNeeds {
  readonly root: string
  readonly disk: DiskSpace | undefined
  /** Limits the writers that sync before their end, because each occupies a thread that other writers need. */
  readonly earlySyncs: Slots
}

/**
 * Appends to one file by position. One batch of chunks is written while the next one is gathered, so at most two batches are in
 * memory.
 *
 * After a failed write or sync the writer fails forever: after a failed fsync the kernel may have dropped the pages, so a second
 * attempt could acknowledge bytes that are not on the disk.
 */
export class FilesystemBlobWriter implements BlobWriter {
  readonly #key: StorageKey
  readonly #file: FileHandle
  readonly #needs: WriterNeeds
  #position: number
  /** All bytes before this position are durable. */
  #flushed: number
  /** The entry of the file in its folder is durable. */
  #isNameSynced: boolean
  #gathered: Uint8Array[] = []
  #gatheredBytes = 0
  /** The batch that is being written, or was written last and is not freed yet. */
  #batch: Uint8Array[] = []
  #writing: Promise<void> = Promise.resolve()
  /** The bytes since the last sync began. */
  #unsyncedBytes = 0
  /** The early sync, while it runs. */
  #syncing: Promise<void> | undefined
  #fault: unknown
  #isClosed = false

  private constructor(key: StorageKey, file: FileHandle, position: number, needs: WriterNeeds) {
    this.#key = key
    this.#file = file
    this.#needs = needs
    this.#position = position
    this.#flushed = position
    this.#isNameSynced = position > 0
  }

  static async open(needs: WriterNeeds, key: StorageKey, position: number): Promise<FilesystemBlobWriter> {
    const creating = position === 0 ? constants.O_CREAT : 0
    const file = await open(pathOf(needs.root, key), constants.O_RDWR | creating, 0o600)
    try {
      // Bytes after the acknowledged end are from a writer that crashed or was aborted.
      const { size } = await file.stat()
      if (size < position) throw new TooShort(`the file holds ${size} of ${position} acknowledged bytes`)
      if (size > position) await file.truncate(position)
    } catch (error) {
      await file.close()
      throw error
    }
    return new FilesystemBlobWriter(key, file, position, needs)
  }

  async write(chunk: Uint8Array): Promise<void> {
    if (chunk.length === 0) return
    this.#needs.disk?.reserve(chunk.length)
    this.#gathered.push(chunk)
    this.#gatheredBytes += chunk.length
    if (this.#gatheredBytes < batchBytes) return
    await this.#writeGathered()
    if (this.#unsyncedBytes >= earlySyncBytes) this.#syncEarly()
  }

  /** Waits for the previous batch, then starts to write this one and returns, so that the caller can gather the next. */
  async #writeGathered(): Promise<void> {
    await this.#waitForBatch()
    const batch = this.#gathered
    const batchSize = this.#gatheredBytes
    const position = this.#position
    this.#batch = batch
    this.#gathered = []
    this.#position += batchSize
    this.#gatheredBytes = 0
    this.#writing = writeFully(this.#file, batch, position)
      .catch((error: unknown) => {
        this.#fault = error
      })
      .finally(() => this.#needs.disk?.release(batchSize))
    this.#unsyncedBytes += batchSize
  }

  /** Later bytes are written at the same time. Does nothing while enough writers sync. */
  #syncEarly(): void {
    const release = this.#syncing === undefined ? this.#needs.earlySyncs.tryTake() : undefined
    if (release === undefined) return
    this.#unsyncedBytes = 0
    this.#syncing = this.#writing
      .then(() => this.#file.datasync())
      .catch((error: unknown) => {
        this.#fault = error
      })
      .finally(() => {
        this.#syncing = undefined
        release()
      })
  }

  /** The caller may have read the chunks of the batch until now. */
  async #waitForBatch(): Promise<void> {
    await this.#writing
    for (const chunk of this.#batch) freeChunk(chunk)
    this.#batch = []
    if (this.#fault !== undefined) throw new Unavailable('blob-store', { cause: this.#fault })
  }

  async flush(): Promise<UnfinishedObject> {
    await this.#writeAll()
    await this.#sync(() => this.#file.datasync())
    await this.#syncName()
    this.#flushed = this.#position
    return { sizeBytes: this.#position, notes: undefined }
  }

  async complete(): Promise<CompleteObject> {
    await this.#writeAll()
    await this.#sync(() => this.#file.sync())
    await this.#syncName()
    return { key: this.#key, isCertain: true, leftovers: [] }
  }

  /** The kernel reports a failed write to one sync only, so the result of the early sync counts too. */
  async #writeAll(): Promise<void> {
    await this.#writeGathered()
    await this.#syncing
    await this.#waitForBatch()
    this.#unsyncedBytes = 0
  }

  async #syncName(): Promise<void> {
    if (this.#isNameSynced) return
    await this.#sync(() => syncFolder(folderOf(this.#needs.root, this.#key)))
    this.#isNameSynced = true
  }

  async rollBack(): Promise<void> {
    await this.#writing
    await this.#syncing
    this.#dropGathered()
    this.#position = this.#flushed
    // If this fails, the next writer drops the bytes when it opens the file.
    await this.#file.truncate(this.#flushed).catch(() => undefined)
  }

  #dropGathered(): void {
    this.#needs.disk?.release(this.#gatheredBytes)
    this.#gathered = []
    this.#gatheredBytes = 0
  }

  async #sync(act: () => Promise<unknown>): Promise<void> {
    try {
      await act()
    } catch (error) {
      this.#fault = error
      await this.#waitForBatch()
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#writing
    await this.#syncing
    this.#dropGathered()
    await this.#file.close()
  }
}

/** The kernel may accept fewer bytes than were offered. The rest is offered again. */
async function writeFully(file: FileHandle, chunks: Uint8Array[], position: number): Promise<void> {
  let rest = chunks
  let at = position
  while (rest.length > 0) {
    const { bytesWritten } = await file.writev(rest, at)
    if (bytesWritten === 0) throw new Error('the disk accepted no bytes')
    at += bytesWritten
    rest = dropBytes(rest, bytesWritten)
  }
}

function dropBytes(chunks: Uint8Array[], count: number): Uint8Array[] {
  let left = count
  for (const [index, chunk] of chunks.entries()) {
    if (left < chunk.length) return [chunk.subarray(left), ...chunks.slice(index + 1)]
    left -= chunk.length
  }
  return []
}
