import { hashHex } from '../lib/hashing.ts'

/** 256 random bits: nobody can guess it, so one fast hash protects what is stored. */
export function generateApiKey(): string {
  const secret = crypto.getRandomValues(new Uint8Array(32))
  return `berth_${Buffer.from(secret).toString('base64url')}`
}

/** What is stored and looked up in place of the key. */
export function hashApiKey(key: string): string {
  return hashHex('sha256', key)
}

/** Tells credentials apart in a log; far too short to be turned back. */
export function fingerprintOf(secret: string): string {
  return hashHex('sha256', `fingerprint:${secret}`).slice(0, 12)
}
