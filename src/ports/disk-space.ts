/**
 * The free space of the disks of this machine. The last `storage.min_free` bytes of each disk are a reserve. Pushes
 * stop there, so that an operator can still revoke keys, move tags, delete and collect.
 *
 * The methods are synchronous. Each may make one short system call.
 */
export interface DiskSpace {
  /** Whether a disk has no free space outside its reserve, or too little for a chunk of an upload. */
  isLow(): boolean

  /** Whether less than half of the reserve of a disk is free. Then nothing may be added, however small it is. */
  isVeryLow(): boolean

  /**
   * Reserves space for bytes that the caller writes next. They count as written from now on. Throws the refusal
   * `disk-low`, and reserves nothing, if the bytes would use the reserve of a disk.
   */
  reserve(bytes: number): void

  /** Ends a reservation: the bytes are written, and the file system counts them, or they will not be written. */
  release(bytes: number): void
}
