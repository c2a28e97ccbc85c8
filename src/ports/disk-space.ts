/**
 * How much may still be written to the disks of this machine. The last `storage.min_free` bytes of each disk are a
 * reserve: pushes stop there, so that revoking a key, moving a tag, deleting and collecting still find room to write.
 *
 * No method waits. Each may ask the file system once, which is one short system call.
 */
export interface DiskSpace {
  /** Whether a disk has no free space beyond its reserve, or so little that a chunk of an upload may not fit. */
  isLow(): boolean

  /** Whether a disk has less free space than half of its reserve. Then nothing may be added, however small it is. */
  isVeryLow(): boolean

  /**
   * Announces bytes that are about to be written. Throws the refusal `disk-low`, and announces nothing, where they would
   * go into the reserve. The file system does not count these bytes yet; they count as written from now on.
   */
  reserve(bytes: number): void

  /** The announced bytes are written, or never will be: the file system's own count is right again. */
  release(bytes: number): void
}
