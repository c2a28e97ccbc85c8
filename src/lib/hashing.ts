/** A hash that is computed while bytes arrive. */
export interface RunningHash {
  readonly algorithm: HashAlgorithm
  update(chunk: Uint8Array): void
  /** The hash of the bytes so far. More bytes can follow. */
  hex(): string
}

export type HashAlgorithm = 'sha256' | 'sha512'

export function startHash(algorithm: HashAlgorithm): RunningHash {
  const hasher = new Bun.CryptoHasher(algorithm)
  return {
    algorithm,
    update: (chunk) => void hasher.update(chunk),
    hex: () => hasher.copy().digest('hex'),
  }
}

export function hashHex(algorithm: HashAlgorithm, bytes: Uint8Array | string): string {
  return Bun.CryptoHasher.hash(algorithm, bytes, 'hex')
}

/** Tells credentials apart in a log. Too short to find the secret again. */
export function fingerprintOf(secret: string): string {
  return hashHex('sha256', `fingerprint:${secret}`).slice(0, 12)
}

/**
 * Hashes secrets to the keys of a cache: the cache contains no secret, and the time of a look-up reveals nothing about one.
 * Each hasher gives other hashes. It hashes a random text and the secret together, which costs half of an HMAC. The
 * weakness of this construction, that a known hash can be extended, does not matter for hashes that nobody sees.
 */
export class SecretHasher {
  readonly #random = crypto.getRandomValues(new Uint8Array(32)).toBase64()

  hash(secret: string): string {
    return Bun.SHA256.hash(this.#random + secret, 'base64')
  }
}
