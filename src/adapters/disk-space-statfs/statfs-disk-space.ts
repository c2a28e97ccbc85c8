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

/** Other programs write to the disk too: what was seen is believed for this long. */
const lookEveryMs = 1_000

/** With less than this above the reserve a disk is low: the next chunk of an upload may not fit. */
const chunkBytes = 1024 ** 2

const autoReserveMax = 1024 ** 3
const autoReserveShare = 0.05

/**
 * Asks the file system with `statfs`. Between two looks it counts the bytes that this process writes, so a fast writer
 * cannot run through the reserve; and it looks again as soon as the space that it saw is used up.
 *
 * A file system that reports no size (some in user space do) has no reserve.
 */
export class StatfsDiskSpace implements DiskSpace {
  readonly #folders: readonly string[]
  readonly #minFreeBytes: number | 'auto'
  readonly #clock: Pick<Clock, 'steadyNow'>
  #lookAt = Number.NEGATIVE_INFINITY
  /** What may be taken before the reserve begins, and before half of the reserve is used. */
  #room = 0
  #roomWithHalf = 0
  #announcedBytes = 0

  constructor(folders: readonly string[], minFreeBytes: number | 'auto', clock: Pick<Clock, 'steadyNow'>) {
    this.#folders = minFreeBytes === 0 ? [] : folders
    this.#minFreeBytes = minFreeBytes
    this.#clock = clock
  }

  isLow(): boolean {
    if (this.#room < chunkBytes || this.#clock.steadyNow() >= this.#lookAt) this.#look()
    return this.#room < chunkBytes
  }

  isVeryLow(): boolean {
    return this.isLow() && this.#roomWithHalf <= 0
  }

  reserve(bytes: number): void {
    if (this.#room < bytes || this.#clock.steadyNow() >= this.#lookAt) this.#look()
    if (this.#room < bytes) throw new RegistryRefusal('disk-low')
    this.#room -= bytes
    this.#roomWithHalf -= bytes
    this.#announcedBytes += bytes
  }

  release(bytes: number): void {
    this.#announcedBytes -= bytes
  }

  /** The state of every disk. */
  describe(): readonly DiskState[] {
    return this.#folders.map((folder) => {
      const { freeBytes, totalBytes } = measure(folder)
      return { folder, freeBytes, reserveBytes: this.#reserveOf(totalBytes) }
    })
  }

  #look(): void {
    this.#room = Number.POSITIVE_INFINITY
    this.#roomWithHalf = Number.POSITIVE_INFINITY
    for (const { freeBytes, reserveBytes } of this.describe()) {
      const unannounced = freeBytes - this.#announcedBytes
      this.#room = Math.min(this.#room, unannounced - reserveBytes)
      this.#roomWithHalf = Math.min(this.#roomWithHalf, unannounced - reserveBytes / 2)
    }
    this.#lookAt = this.#clock.steadyNow() + lookEveryMs
  }

  #reserveOf(totalBytes: number): number {
    if (totalBytes === 0) return Number.NEGATIVE_INFINITY
    if (this.#minFreeBytes !== 'auto') return this.#minFreeBytes
    return Math.min(autoReserveMax, Math.floor(totalBytes * autoReserveShare))
  }
}

function measure(folder: string): { freeBytes: number; totalBytes: number } {
  try {
    // `bavail`, not `bfree`: many file systems keep a part of the disk for root alone.
    const { bavail, blocks, bsize } = statfsSync(folder)
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch (error) {
    throw new Unavailable('the disk', { cause: error })
  }
}
