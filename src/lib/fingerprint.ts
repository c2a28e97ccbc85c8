import { hashHex } from './hashing.ts'

/** Tells credentials apart in a log; far too short to be turned back. */
export function fingerprintOf(secret: string): string {
  return hashHex('sha256', `fingerprint:${secret}`).slice(0, 12)
}
