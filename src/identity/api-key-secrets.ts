import { hashHex } from '../lib/hashing.ts'

/** 256 random bits cannot be guessed, so a fast hash is enough to protect the stored key. */
export function generateApiKey(): string {
  const secret = crypto.getRandomValues(new Uint8Array(32))
  return `berth_${Buffer.from(secret).toString('base64url')}`
}

const generatedKey = /^berth_[A-Za-z0-9_-]{43}$/

/** Whether a secret has the form of the keys that this service creates. */
export function isGeneratedKey(secret: string): boolean {
  return generatedKey.test(secret)
}

/** The hash that is stored instead of the key. */
export function hashApiKey(key: string): string {
  return hashHex('sha256', key)
}
