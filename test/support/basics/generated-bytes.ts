// Content of any size from a seed: the same bytes each time, and never all of them in memory.
import type { Digest } from '../../../src/oci/digest.ts'

/** A small random generator whose runs can be repeated: mulberry32. Gives numbers from 0 up to, not including, 1. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Bytes that no other seed gives, for pieces that fit into memory. */
export function generatedBytes(sizeBytes: number, seed = 1): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(sizeBytes)
  const random = seededRandom(seed)
  for (let at = 0; at < sizeBytes; at += 1) bytes[at] = Math.floor(random() * 256)
  return bytes
}

/** A long stream of chunks, one buffer with a counter in it: cheap to make, and no two chunks alike. */
export function* generatedChunks(sizeBytes: number, chunkBytes = 1024 * 1024): Generator<Uint8Array<ArrayBuffer>> {
  const pattern = generatedBytes(Math.min(chunkBytes, sizeBytes), 7)
  for (let at = 0; at < sizeBytes; at += pattern.length) {
    const chunk = new Uint8Array(pattern.subarray(0, Math.min(pattern.length, sizeBytes - at)))
    if (chunk.length >= 8) new DataView(chunk.buffer).setBigUint64(0, BigInt(at))
    yield chunk
  }
}

export function digestOf(bytes: Uint8Array | string, algorithm: 'sha256' | 'sha512' = 'sha256'): Digest {
  return `${algorithm}:${Bun.CryptoHasher.hash(algorithm, bytes, 'hex')}` as Digest
}

export function digestOfChunks(chunks: Iterable<Uint8Array>): Digest {
  const hasher = new Bun.CryptoHasher('sha256')
  for (const chunk of chunks) hasher.update(chunk)
  return `sha256:${hasher.digest('hex')}` as Digest
}

/** The digest of a file's bytes, read as a stream. */
export async function hashFile(path: string, algorithm: 'sha256' | 'sha512' = 'sha256'): Promise<string> {
  const hasher = new Bun.CryptoHasher(algorithm)
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk)
  return `${algorithm}:${hasher.digest('hex')}`
}
