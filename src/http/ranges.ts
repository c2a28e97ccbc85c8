import { RegistryRefusal } from '../oci/errors.ts'
import type { ByteRange } from '../ports/blob-store.ts'

const oneRange = /^bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i
export const chunkRange = /^(\d+)-(\d+)$/

/**
 * The part that a `Range` header asks for. Undefined means the whole content: without the header, with several ranges
 * (RFC 9110, 14.2: a server may ignore the header), or with another unit. The unit is case-insensitive (14.1). Spaces
 * between the parts are accepted, because Bun accepts them: it applies a range of a file that is not applied here, and
 * the answer would depend on where a blob is stored.
 *
 * `bytes=500-0` is not a valid range by RFC 9110 and could be ignored. It is refused like a range behind the end,
 * because a client that sends it does not want the whole blob.
 */
export function parseRange(header: string | null, sizeBytes: number): ByteRange | undefined {
  if (header === null) return undefined
  const match = oneRange.exec(header)
  if (match === null) return undefined
  const [, from = '', to = ''] = match
  if (from === '' && to === '') return undefined
  const range = from === '' ? lastBytes(Number(to), sizeBytes) : { first: Number(from), last: Number(to || Infinity) }
  if (range.first >= sizeBytes || range.last < range.first) {
    throw new RegistryRefusal('range-unsatisfiable', { size: sizeBytes })
  }
  return { first: range.first, last: Math.min(range.last, sizeBytes - 1) }
}

function lastBytes(count: number, sizeBytes: number): ByteRange {
  if (count === 0) throw new RegistryRefusal('range-unsatisfiable', { size: sizeBytes })
  return { first: Math.max(0, sizeBytes - count), last: sizeBytes - 1 }
}

/**
 * The `Content-Range` of a chunk: `<first>-<last>`, both included and without a unit, as the distribution-spec defines
 * it.
 */
export function parseChunkRange(header: string | null): { first: number; lengthBytes: number } | undefined {
  if (header === null) return undefined
  const match = chunkRange.exec(header.trim())
  const first = Number(match?.[1])
  const last = Number(match?.[2])
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(last) || last < first) {
    throw new RegistryRefusal('content-range-invalid', { contentRange: header.slice(0, 64) })
  }
  return { first, lengthBytes: last - first + 1 }
}

/** The received bytes of an upload. Docker expects `0-0` while there are none, and fails on `0--1`. */
export function receivedRange(receivedBytes: number): string {
  return `0-${Math.max(0, receivedBytes - 1)}`
}
