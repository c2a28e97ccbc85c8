import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { syncFolder } from '../../lib/sync-folder.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { BlobWriter, CompleteObject, StorageKey, UnfinishedObject } from '../../ports/blob-store.ts'
import type { DiskSpace } from '../../ports/disk-space.ts'
import { folderOf, pathOf } from './paths.ts'

/** Acknowledged bytes are lost. */
export class TooShort extends Error {
  override readonly name = 'TooShort'
}

/** Small chunks are gathered up to this many bytes before a thread is asked to write them. */
const batchBytes = 512 * 1024

/**
 * Appends to one file by position. Chunks are gathered into batches, and one batch is written while the next is
 * gathered: at most two are in memory, whatever the size of the body.
 *
 * A failed write or sync is final for this writer: after a failed fsync the kernel may have dropped the pages, so trying
 * again could acknowledge bytes that are not there.
 */
export class FilesystemBlobWriter implements BlobWriter {
  readonly #key: StorageKey
  readonly #file: FileHandle
  readonly #folder: string
  readonly #disk: DiskSpace | undefined
  #position: number
  /** Up to here everything is durable. */
  #flushed: number
  /** The file's own name is durable too. */
  #isNameSynced: boolean
  #gathered: Uint8Array[] = []
  #gatheredBytes = 0
  #writing: Promise<void> = Promise.resolve()
  #fault: unknown
  #isClosed = false

  private constructor(
    key: StorageKey,
    file: FileHandle,
    folder: string,
    position: number,
    disk: DiskSpace | undefined,
  ) {
    this.#key = key
    this.#file = file
    this.#folder = folder
    this.#disk = disk
    this.#position = position
    this.#flushed = position
    this.#isNameSynced = position > 0
  }

  static async open(
    root: string,
    key: StorageKey,
    position: number,
    disk: DiskSpace | undefined,
  ): Promise<FilesystemBlobWriter> {
    const creating = position === 0 ? constants.O_CREAT : 0
    const file = await open(pathOf(root, key), constants.O_RDWR | creating, 0o600)
    try {
      // Bytes behind the acknowledged end belong to a writer that crashed or was cut off.
      const { size } = await file.stat()
      if (size < position) throw new TooShort(`the file holds ${size} of ${position} acknowledged bytes`)
      if (size > position) await file.truncate(position)
    } catch (error) {
      await file.close()
      throw error
    }
    return new FilesystemBlobWriter(key, file, folderOf(root, key), position, disk)
  }

  async write(chunk: Uint8Array): Promise<void> {
    if (chunk.length === 0) return
    this.#disk?.reserve(chunk.length)
    this.#gathered.push(chunk)
    this.#gatheredBytes += chunk.length
    if (this.#gatheredBytes >= batchBytes) await this.#writeGathered()
  }

  /** Waits for the batch before, then starts this one and returns: the caller goes on gathering meanwhile. */
  async #writeGathered(): Promise<void> {
    await this.#settle()
    const batch = this.#gathered
    const batchSize = this.#gatheredBytes
    const position = this.#position
    this.#gathered = []
    this.#position += batchSize
    this.#gatheredBytes = 0
    this.#writing = writeFully(this.#file, batch, position)
      .catch((error: unknown) => {
        this.#fault = error
      })
      .finally(() => this.#disk?.release(batchSize))
  }

  async #settle(): Promise<void> {
    await this.#writing
    if (this.#fault !== undefined) throw new Unavailable('the blob store', { cause: this.#fault })
  }

  async flush(): Promise<UnfinishedObject> {
    await this.#writeGathered()
    await this.#settle()
    await this.#final(() => this.#file.datasync())
    await this.#syncName()
    this.#flushed = this.#position
    return { sizeBytes: this.#position, notes: undefined }
  }

  async complete(): Promise<CompleteObject> {
    await this.#writeGathered()
    await this.#settle()
    await this.#final(() => this.#file.sync())
    await this.#syncName()
    return { key: this.#key, isCertain: true, leftovers: [] }
  }

  async #syncName(): Promise<void> {
    if (this.#isNameSynced) return
    await this.#final(() => syncFolder(this.#folder))
    this.#isNameSynced = true
  }

  async rollBack(): Promise<void> {
    await this.#writing
    this.#dropGathered()
    this.#position = this.#flushed
    // If even this fails, the next writer drops the bytes when it opens the file.
    await this.#file.truncate(this.#flushed).catch(() => undefined)
  }

  #dropGathered(): void {
    this.#disk?.release(this.#gatheredBytes)
    this.#gathered = []
    this.#gatheredBytes = 0
  }

  async #final(act: () => Promise<unknown>): Promise<void> {
    try {
      await act()
    } catch (error) {
      this.#fault = error
      await this.#settle()
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#writing
    this.#dropGathered()
    await this.#file.close()
  }
}

/** The kernel may take fewer bytes than it was offered; what is left is offered again. */
async function writeFully(file: FileHandle, chunks: Uint8Array[], position: number): Promise<void> {
  let rest = chunks
  let at = position
  while (rest.length > 0) {
    const { bytesWritten } = await file.writev(rest, at)
    if (bytesWritten === 0) throw new Error('the disk took no bytes')
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
