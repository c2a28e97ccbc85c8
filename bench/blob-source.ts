// One big file whose last bytes change before each upload, so that the blob is new to every registry.
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const blockBytes = 4 * 2 ** 20
const stampBytes = 64

export interface BlobSource {
  readonly path: string
  readonly sizeBytes: number
  /** Writes new last bytes durably, before the measurement begins. Returns the digest. */
  stamp(): string
}

export function createBlobSource(folder: string, sizeBytes: number): BlobSource {
  const path = join(folder, 'blob.bin')
  const file = openSync(path, 'w')
  const hasher = new Bun.CryptoHasher('sha256')
  const block = randomBytes(blockBytes)
  const bodyBytes = sizeBytes - stampBytes
  for (let written = 0; written < bodyBytes; ) {
    block.set(Buffer.from(`${written}`.padStart(16)))
    const part = block.subarray(0, Math.min(blockBytes, bodyBytes - written))
    writeSync(file, part)
    hasher.update(part)
    written += part.length
  }
  fsyncSync(file)
  closeSync(file)
  return { path, sizeBytes, stamp: () => stampFile(path, bodyBytes, hasher.copy()) }
}

function stampFile(path: string, offset: number, hasher: Bun.CryptoHasher): string {
  const stamp = Buffer.from(crypto.randomUUID().padEnd(stampBytes))
  const file = openSync(path, 'r+')
  writeSync(file, stamp, 0, stampBytes, offset)
  fsyncSync(file)
  closeSync(file)
  return `sha256:${hasher.update(stamp).digest('hex')}`
}

export function randomBytes(count: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(count)
  // getRandomValues takes at most 64 KiB at a time.
  for (let offset = 0; offset < count; offset += 65_536) crypto.getRandomValues(bytes.subarray(offset, offset + 65_536))
  return bytes
}
