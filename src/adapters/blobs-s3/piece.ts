import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type RunningHash, startHash } from '../../lib/hashing.ts'
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

/** What is smaller is copied behind the one before it: a sender of single bytes would take a hundred times their room. */
const joinedBelowBytes = 4 * 1024
const blockBytes = 64 * 1024

export class PieceInMemory implements Piece {
  readonly startsAt: number
  readonly #proof: Proof
  #chunks: Uint8Array[] = []
  #block = new Uint8Array(0)
  #blockUsed = 0
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
    if (chunk.length < joinedBelowBytes) this.#copy(chunk)
    else this.#chunks.push(chunk)
    this.#sizeBytes += chunk.length
  }

  #copy(chunk: Uint8Array): void {
    if (this.#blockUsed + chunk.length > this.#block.length) {
      this.#block = new Uint8Array(blockBytes)
      this.#blockUsed = 0
    }
    this.#block.set(chunk, this.#blockUsed)
    const last = this.#chunks.at(-1)
    const goesOn = last?.buffer === this.#block.buffer && last.byteOffset + last.length === this.#blockUsed
    const from = goesOn ? last.byteOffset : this.#blockUsed
    this.#blockUsed += chunk.length
    this.#chunks.splice(goesOn ? -1 : this.#chunks.length, 1, this.#block.subarray(from, this.#blockUsed))
  }

  body(): S3Body {
    // Joined once, however often it is sent.
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
    return { bytes: this.#chunks[0] ?? new Uint8Array(), ...this.#proof.words() }
  }

  async discard(): Promise<void> {
    this.#chunks = []
    this.#block = new Uint8Array(0)
    this.#blockUsed = 0
  }
}

/** For pieces that are too large for memory. The file is nobody's data: what is not sent yet was not acknowledged. */
export class PieceInFile implements Piece {
  readonly startsAt: number
  readonly #path: string
  readonly #file: FileHandle
  readonly #proof: Proof
  #sizeBytes = 0
  #fault: unknown
  #isDiscarded = false

  private constructor(startsAt: number, path: string, file: FileHandle, checksum: Checksum) {
    this.startsAt = startsAt
    this.#path = path
    this.#file = file
    this.#proof = new Proof(checksum)
  }

  static async open(startsAt: number, folder: string, checksum: Checksum): Promise<PieceInFile> {
    const path = join(folder, `${Bun.randomUUIDv7()}.part`)
    return new PieceInFile(startsAt, path, await open(path, 'wx', 0o600), checksum)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  async append(chunk: Uint8Array): Promise<void> {
    this.#checkFault()
    try {
      await this.#file.writeFile(chunk)
    } catch (error) {
      this.#fault = error
      throw error
    }
    this.#proof.update(chunk)
    this.#sizeBytes += chunk.length
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
