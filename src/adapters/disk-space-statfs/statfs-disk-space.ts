import { statfsSync } from 'node:fs'
import { RegistryRefusal, Unavailable } from '../../oci/errors.ts'
import type { Clock } from '../../ports/clock.ts'
import type { DiskSpace } from '../../ports/disk-space.ts'

/** The disk of one folder. */
export interface DiskState {
  readonly folder: string
  readonly freeBytes: number
  readonly reserveBytes: number
}

/** How long a measurement is used. Other programs write to the disk too. */
const measureEveryMs = 1_000
/** The same for a process that shares the disk: what the others write makes its own share smaller. A measurement takes 1 µs. */
const measureSharedEveryMs = 20

/** A disk with less free space above its reserve is low, because the next chunk of an upload may not fit. */
const chunkBytes = 1024 ** 2

const autoReserveMax = 1024 ** 3
const autoReserveShare = 0.05

/**
 * Measures the disks with `statfs`. Between two measurements it subtracts the bytes that this process writes, so that a fast
 * writer cannot use up the reserve, and it measures again as soon as the measured space is used up.
 *
 * A file system that reports no size has no reserve. Some file systems in user space do that.
 */
export class StatfsDiskSpace implements DiskSpace {
  readonly #folders: readonly string[]
  readonly #minFreeBytes: number | 'auto'
  readonly #clock: Pick<Clock, 'steadyNow'>
  readonly #processes: number
  #measureAt = Number.NEGATIVE_INFINITY
  /** Bytes that may be written before the reserve begins, and before half of it is used. */
  #usableBytes = 0
  #usableWithHalfBytes = 0
  #reservedBytes = 0

  /** `processes`: how many processes share the space. Between two measurements each uses only its share of what is free. */
  constructor(
    folders: readonly string[],
    minFreeBytes: number | 'auto',
    clock: Pick<Clock, 'steadyNow'>,
    processes = 1,
  ) {
    this.#folders = minFreeBytes === 0 ? [] : folders
    this.#minFreeBytes = minFreeBytes
    this.#clock = clock
    this.#processes = processes
  }

  isLow(): boolean {
    if (this.#usableBytes < chunkBytes || this.#clock.steadyNow() >= this.#measureAt) this.#measure()
    return this.#usableBytes < chunkBytes
  }

  isVeryLow(): boolean {
    return this.isLow() && this.#usableWithHalfBytes <= 0
  }

  reserve(bytes: number): void {
    if (this.#usableBytes < bytes || this.#clock.steadyNow() >= this.#measureAt) this.#measure()
    if (this.#usableBytes < bytes) throw new RegistryRefusal('disk-low')
    this.#usableBytes -= bytes
    this.#usableWithHalfBytes -= bytes
    this.#reservedBytes += bytes
  }

  release(bytes: number): void {
    this.#reservedBytes -= bytes
  }

  /** The state of every disk. */
  describe(): readonly DiskState[] {
    return this.#folders.map((folder) => {
      const { freeBytes, totalBytes } = readDisk(folder)
      return { folder, freeBytes, reserveBytes: this.#reserveOf(totalBytes) }
    })
  }

  #measure(): void {
    this.#usableBytes = Number.POSITIVE_INFINITY
    this.#usableWithHalfBytes = Number.POSITIVE_INFINITY
    for (const { freeBytes, reserveBytes } of this.describe()) {
      const unreservedBytes = freeBytes - this.#reservedBytes
      this.#usableBytes = Math.min(this.#usableBytes, this.#shareOf(unreservedBytes - reserveBytes))
      this.#usableWithHalfBytes = Math.min(this.#usableWithHalfBytes, this.#shareOf(unreservedBytes - reserveBytes / 2))
    }
    this.#measureAt = this.#clock.steadyNow() + (this.#processes > 1 ? measureSharedEveryMs : measureEveryMs)
  }

  #shareOf(bytes: number): number {
    return bytes > 0 ? bytes / this.#processes : bytes
  }

  #reserveOf(totalBytes: number): number {
    if (totalBytes === 0) return Number.NEGATIVE_INFINITY
    if (this.#minFreeBytes !== 'auto') return this.#minFreeBytes
    return Math.min(autoReserveMax, Math.floor(totalBytes * autoReserveShare))
  }
}

function readDisk(folder: string): { freeBytes: number; totalBytes: number } {
  try {
    // Not `bfree`, which includes the part that many file systems keep for root.
    const { bavail, blocks, bsize } = statfsSync(folder)
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch (error) {
    throw new Unavailable('disk', { cause: error })
  }
}
