import { type FileHandle, mkdir, open, readdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type RunningHash, startHash } from '../../lib/hashing.ts'
import { NoSlot, Slots } from '../../lib/slots.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { DiskSpace } from '../../ports/disk-space.ts'
import { type Checksum, formatCrc32, type S3Body } from './s3-request.ts'

/** How large the parts of an object are. S3 accepts 10,000 parts of up to 5 GiB. */
export interface PartPlan {
  /** In ascending order of size. */
  readonly steps: readonly { readonly parts: number; readonly sizeBytes: number }[]
  /** The smallest part that S3 accepts, except for the last part. */
  readonly minBytes: number
  /** Larger parts are buffered in a file instead of in memory. */
  readonly memoryMax: number
}

const mebi = 1024 * 1024

/**
 * The first parts are small, so small layers need little memory. After 55 GB of one blob, parts have 2 GiB, so 5 TiB fit
 * even if a client that sends chunks cuts every part to half of its size.
 */
export const usualPlan: PartPlan = {
  steps: [
    { parts: 1_000, sizeBytes: 8 * mebi },
    { parts: 3_000, sizeBytes: 16 * mebi },
    { parts: 6_000, sizeBytes: 2_048 * mebi },
  ],
  minBytes: 5 * mebi,
  memoryMax: 16 * mebi,
}

/** The size of the part with this number. The first part has the number 1. */
export function sizeOfPart({ steps }: PartPlan, number: number): number {
  let last = 0
  for (const step of steps) {
    last += step.parts
    if (number <= last) return step.sizeBytes
  }
  throw new Error(`an object has at most ${last} parts`)
}

/** Whether flushed bytes are sent as a part before it is full, or else stored as a tail. */
export function isWorthAPart(plan: PartPlan, number: number, sizeBytes: number): boolean {
  return sizeBytes >= Math.max(plan.minBytes, sizeOfPart(plan, number) / 2)
}

/** Computes what proves the bytes to S3, while they arrive. */
class RunningChecksum {
  readonly #hash: RunningHash | undefined
  #crc: number | undefined

  constructor(checksum: Checksum) {
    this.#hash = checksum === 'sha256' ? startHash('sha256') : undefined
    this.#crc = checksum === 'crc32' ? 0 : undefined
  }

  update(chunk: Uint8Array): void {
    this.#hash?.update(chunk)
    if (this.#crc !== undefined) this.#crc = Bun.hash.crc32(chunk, this.#crc)
  }

  values(): Pick<S3Body, 'sha256' | 'crc32'> {
    return { sha256: this.#hash?.hex(), crc32: this.#crc === undefined ? undefined : formatCrc32(this.#crc) }
  }
}

/** The bytes of one part or one object. They are kept until S3 has stored them, so that the request can be repeated. */
export interface PartBuffer {
  /** The position of its first byte in the whole object. */
  readonly startsAt: number
  readonly sizeBytes: number
  append(chunk: Uint8Array): Promise<void>
  /** Valid until the next `append` or `discard`. */
  body(): S3Body
  /** Frees the memory or the file. Safe to call twice. */
  discard(): Promise<void>
}

const bufferMinBytes = 4 * 1024

/**
 * One contiguous buffer. A list of small chunks would need a hundred times their size, and joining them before they are sent
 * would need the size twice. The memory is freed explicitly: with garbage collection, a server with many uploads
 * needed twice as much.
 */
export class MemoryPartBuffer implements PartBuffer {
  readonly startsAt: number
  readonly #checksum: RunningChecksum
  #buffer = new ArrayBuffer(0)
  #sizeBytes = 0

  constructor(startsAt: number, checksum: Checksum) {
    this.startsAt = startsAt
    this.#checksum = new RunningChecksum(checksum)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  async append(chunk: Uint8Array): Promise<void> {
    this.#checksum.update(chunk)
    const sizeBytes = this.#sizeBytes + chunk.length
    if (sizeBytes > this.#buffer.byteLength) {
      // A power of two, as are the sizes of parts.
      this.#buffer = this.#buffer.transfer(2 ** Math.ceil(Math.log2(Math.max(sizeBytes, bufferMinBytes))))
    }
    new Uint8Array(this.#buffer, this.#sizeBytes).set(chunk)
    this.#sizeBytes = sizeBytes
  }

  body(): S3Body {
    return { bytes: new Uint8Array(this.#buffer, 0, this.#sizeBytes), ...this.#checksum.values() }
  }

  async discard(): Promise<void> {
    // An aborted request that still reads from the buffer ends here: S3 rejects its body, because it is too short.
    this.#buffer = this.#buffer.transfer(0)
  }
}

/** For parts that are too large for memory. Its bytes are not acknowledged yet, so a crash may lose the file. */
export class FilePartBuffer implements PartBuffer {
  readonly startsAt: number
  readonly #path: string
  readonly #file: FileHandle
  readonly #checksum: RunningChecksum
  readonly #disk: DiskSpace | undefined
  #sizeBytes = 0
  #error: unknown
  #isDiscarded = false

  private constructor(startsAt: number, path: string, file: FileHandle, checksum: Checksum, disk?: DiskSpace) {
    this.startsAt = startsAt
    this.#path = path
    this.#file = file
    this.#checksum = new RunningChecksum(checksum)
    this.#disk = disk
  }

  /** With `disk`, the file does not grow into the reserve of the disk. */
  static async open(startsAt: number, folder: string, checksum: Checksum, disk?: DiskSpace): Promise<FilePartBuffer> {
    const path = join(folder, `${Bun.randomUUIDv7()}.part`)
    return new FilePartBuffer(startsAt, path, await open(path, 'wx', 0o600), checksum, disk)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  async append(chunk: Uint8Array): Promise<void> {
    if (this.#error !== undefined) throw this.#error
    this.#reserve(chunk.length)
    try {
      await this.#file.writeFile(chunk)
    } catch (error) {
      // Final: it is not known how much of the chunk is in the file.
      this.#error = error
      throw error
    } finally {
      this.#disk?.release(chunk.length)
    }
    this.#checksum.update(chunk)
    this.#sizeBytes += chunk.length
  }

  /** The refusal `disk-low` means that all earlier bytes can still be flushed. Here, the chunk may span two parts. */
  #reserve(bytes: number): void {
    try {
      this.#disk?.reserve(bytes)
    } catch (error) {
      throw new Unavailable('part-buffers', { cause: error })
    }
  }

  body(): S3Body {
    if (this.#error !== undefined) throw this.#error
    return { bytes: Bun.file(this.#path), ...this.#checksum.values() }
  }

  async discard(): Promise<void> {
    if (this.#isDiscarded) return
    this.#isDiscarded = true
    await this.#file.close()
    await unlink(this.#path)
  }
}

export interface PartBufferSettings {
  readonly plan: PartPlan
  readonly checksum: Checksum
  /** The number of buffers in memory for all writers, and how many writers may wait for one, and how long. */
  readonly memoryBuffersMax: number
  readonly queueMax: number
  readonly waitMaxMs: number
  /** The folder of buffers in files, and its disk, if that has a reserve. */
  readonly folder: string
  readonly disk?: DiskSpace | undefined
}

/** Smaller buffers are not counted, and do not wait. */
const uncountedMaxBytes = 64 * 1024
/** After this time, the process that has created a file is gone. */
const abandonedAfterMs = 7 * 24 * 3_600_000

/**
 * The memory that all writers share. A writer takes a place for the buffer that it fills, and releases it when S3 has
 * stored the part. While there is no free place, the writer does not read from its client. A slow client may hold a place for hours,
 * so a writer that has waited long enough continues in a file.
 */
export class PartBufferPool {
  readonly plan: PartPlan
  readonly #settings: PartBufferSettings
  readonly #slots: Slots
  readonly #releases = new Map<PartBuffer, () => void>()
  #hasFolder = false

  constructor(settings: PartBufferSettings) {
    this.plan = settings.plan
    this.#settings = settings
    this.#slots = new Slots(settings.memoryBuffersMax, settings.queueMax, settings.waitMaxMs)
  }

  async open(startsAt: number, number: number): Promise<PartBuffer> {
    return sizeOfPart(this.plan, number) <= this.plan.memoryMax
      ? new MemoryPartBuffer(startsAt, this.#settings.checksum)
      : this.#openFile(startsAt)
  }

  async #openFile(startsAt: number): Promise<PartBuffer> {
    const { folder, checksum, disk } = this.#settings
    await this.#prepareFolder()
    return FilePartBuffer.open(startsAt, folder, checksum, disk)
  }

  /** Makes room for so many bytes. Gives the buffer to continue with: a file with the same bytes if memory is full. */
  async prepare(buffer: PartBuffer, bytes: number): Promise<PartBuffer> {
    const needsPlace = buffer instanceof MemoryPartBuffer && !this.#releases.has(buffer)
    if (!needsPlace || this.isUncounted(buffer.sizeBytes + bytes)) return buffer
    try {
      this.#releases.set(buffer, await this.#slots.take())
      return buffer
    } catch (error) {
      if (!(error instanceof NoSlot)) throw error
      return this.#moveToFile(buffer)
    }
  }

  readonly isUncounted = (sizeBytes: number): boolean => sizeBytes <= uncountedMaxBytes

  /** Gives the buffer to continue with, as `prepare` does. */
  async append(buffer: PartBuffer, chunk: Uint8Array): Promise<PartBuffer> {
    const prepared = await this.prepare(buffer, chunk.length)
    try {
      await prepared.append(chunk)
      return prepared
    } catch (error) {
      // The caller does not know the new buffer yet.
      if (prepared !== buffer) await prepared.discard()
      throw error
    }
  }

  async #moveToFile(buffer: PartBuffer): Promise<PartBuffer> {
    const file = await this.#openFile(buffer.startsAt)
    try {
      for await (const bytes of new Blob([buffer.body().bytes]).stream()) await file.append(bytes)
    } catch (error) {
      await file.discard()
      throw error
    }
    await buffer.discard()
    return file
  }

  /** Never rejects: the bytes are stored or not needed. A file that cannot be removed is removed after a week. */
  async close(buffer: PartBuffer): Promise<void> {
    await buffer.discard().catch(() => undefined)
    this.#releases.get(buffer)?.()
    this.#releases.delete(buffer)
  }

  /** Creates the folder when it is first needed, and removes files of processes that crashed. */
  async #prepareFolder(): Promise<void> {
    if (this.#hasFolder) return
    const { folder } = this.#settings
    await mkdir(folder, { recursive: true, mode: 0o700 })
    this.#hasFolder = true
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      const found = await stat(path).catch(() => undefined)
      if (found !== undefined && Date.now() - found.mtimeMs > abandonedAfterMs)
        await unlink(path).catch(() => undefined)
    }
  }
}
