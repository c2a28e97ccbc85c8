import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type RunningHash, startHash } from '../../lib/hashing.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { DiskSpace } from '../../ports/disk-space.ts'
import type { S3Body } from './s3-client.ts'

/** How the store proves what it is sent. */
export type Checksum = 'sha256' | 'crc32' | 'none'

/**
 * Bytes on their way to becoming one part or one object, gathered until they are sent and kept until the store has them,
 * so that sending can be repeated. What proves them is computed as they come.
 */
export interface Piece {
  /** Where in the whole object it begins. */
  readonly startsAt: number
  readonly sizeBytes: number
  append(chunk: Uint8Array): Promise<void>
  body(): S3Body
  /** Lets go of memory or file. Safe to call twice. */
  discard(): Promise<void>
}

class Proof {
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

  words(): Pick<S3Body, 'sha256' | 'crc32'> {
    return { sha256: this.#hash?.hex(), crc32: this.#crc === undefined ? undefined : toBase64(this.#crc) }
  }
}

function toBase64(crc: number): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(crc)
  return bytes.toString('base64')
}

const leastBytes = 4 * 1024

/**
 * In one buffer, which is all that there is of the bytes: kept as they came, chunks of a few bytes would take a hundred times
 * their room, and joined before they are sent, all would be there twice. What is sent is given back at once, and not when the
 * collector comes round: that makes half of the memory of a server that many push to.
 */
export class PieceInMemory implements Piece {
  readonly startsAt: number
  readonly #proof: Proof
  #buffer = new ArrayBuffer(0)
  #sizeBytes = 0

  constructor(startsAt: number, checksum: Checksum) {
    this.startsAt = startsAt
    this.#proof = new Proof(checksum)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  async append(chunk: Uint8Array): Promise<void> {
    this.#proof.update(chunk)
    const sizeBytes = this.#sizeBytes + chunk.length
    if (sizeBytes > this.#buffer.byteLength) this.#buffer = this.#buffer.transfer(roomFor(sizeBytes))
    new Uint8Array(this.#buffer, this.#sizeBytes).set(chunk)
    this.#sizeBytes = sizeBytes
  }

  /** A look into the piece: good until it is appended to or discarded. */
  body(): S3Body {
    return { bytes: new Uint8Array(this.#buffer, 0, this.#sizeBytes), ...this.#proof.words() }
  }

  async discard(): Promise<void> {
    // What an attempt that was given up still reads of it ends there: too short to be taken for the whole.
    this.#buffer = this.#buffer.transfer(0)
  }
}

/** A power of two, as the sizes of pieces are. */
function roomFor(sizeBytes: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(sizeBytes, leastBytes)))
}

/** For pieces that are too large for memory. The file is nobody's data: what is not sent yet was not acknowledged. */
export class PieceInFile implements Piece {
  readonly startsAt: number
  readonly #path: string
  readonly #file: FileHandle
  readonly #proof: Proof
  readonly #disk: DiskSpace | undefined
  #sizeBytes = 0
  #fault: unknown
  #isDiscarded = false

  private constructor(
    startsAt: number,
    path: string,
    file: FileHandle,
    checksum: Checksum,
    disk: DiskSpace | undefined,
  ) {
    this.startsAt = startsAt
    this.#path = path
    this.#file = file
    this.#proof = new Proof(checksum)
    this.#disk = disk
  }

  /** Where `disk` is given, the file stops at its reserve. */
  static async open(startsAt: number, folder: string, checksum: Checksum, disk?: DiskSpace): Promise<PieceInFile> {
    const path = join(folder, `${Bun.randomUUIDv7()}.part`)
    return new PieceInFile(startsAt, path, await open(path, 'wx', 0o600), checksum, disk)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  async append(chunk: Uint8Array): Promise<void> {
    this.#checkFault()
    this.#takeFromDisk(chunk.length)
    try {
      await this.#file.writeFile(chunk)
    } catch (error) {
      this.#fault = error
      throw error
    } finally {
      this.#disk?.release(chunk.length)
    }
    this.#proof.update(chunk)
    this.#sizeBytes += chunk.length
  }

  /**
   * The refusal `disk-low` would say that all bytes before this chunk can still be flushed. That is not so here: a chunk may
   * be the end of one piece and the beginning of the next.
   */
  #takeFromDisk(bytes: number): void {
    try {
      this.#disk?.reserve(bytes)
    } catch (error) {
      throw new Unavailable('the disk for pieces of uploads', { cause: error })
    }
  }

  /** A fault is final: nobody knows how much of the chunk stands in the file. */
  #checkFault(): void {
    if (this.#fault !== undefined) throw this.#fault
  }

  body(): S3Body {
    this.#checkFault()
    return { bytes: Bun.file(this.#path), ...this.#proof.words() }
  }

  async discard(): Promise<void> {
    if (this.#isDiscarded) return
    this.#isDiscarded = true
    await this.#file.close()
    await unlink(this.#path)
  }
}
