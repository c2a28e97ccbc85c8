import { RegistryRefusal } from './errors.ts'

/** A digest of a supported algorithm: `sha256:<64 hex>` or `sha512:<128 hex>`. */
export type Digest = string & { readonly __brand: 'Digest' }

/**
 * A digest with the right form. Its algorithm may not be supported (`blake3:...`). The subject of a manifest may have
 * such a digest, but no stored content has one.
 */
export type WellFormedDigest = Digest | (string & { readonly __brand: 'WellFormedDigest' })

export type DigestAlgorithm = 'sha256' | 'sha512'

/** The number of hexadecimal digits. */
export const hexLength: Readonly<Record<DigestAlgorithm, number>> = { sha256: 64, sha512: 128 }

// image-spec, "Digests". Anchored, and without nested repetition over the same characters: linear in the input.
export const wellFormedDigestPattern = /^[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$/
const lowerHex = /^[a-f0-9]+$/
export const digestLengthMax = 255

export function isDigestAlgorithm(text: string): text is DigestAlgorithm {
  return text === 'sha256' || text === 'sha512'
}

export function parseDigestAlgorithm(text: string): DigestAlgorithm {
  if (isDigestAlgorithm(text)) return text
  throw new RegistryRefusal('digest-unsupported', { algorithm: text.slice(0, digestLengthMax) })
}

/** Refuses a text that is no digest of a supported algorithm. */
export function parseDigest(text: string): Digest {
  const digest = parseWellFormedDigest(text)
  if (isSupported(digest)) return digest
  throw new RegistryRefusal('digest-unsupported', { digest: text })
}

/** One pattern for what `isWellFormedDigest` and `isSupported` say together, because every pull by digest asks this. */
const supportedDigest = /^(?:sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128})$/

export function isDigest(text: string): text is Digest {
  return supportedDigest.test(text)
}

/**
 * Refuses a text that is no digest. For a supported algorithm, the encoding must have the right length and characters.
 */
export function parseWellFormedDigest(text: string): WellFormedDigest {
  if (isWellFormedDigest(text)) return text
  throw new RegistryRefusal('digest-invalid', { digest: text.slice(0, digestLengthMax) })
}

export function isWellFormedDigest(text: string): text is WellFormedDigest {
  if (text.length > digestLengthMax || !wellFormedDigestPattern.test(text)) return false
  const colon = text.indexOf(':')
  const algorithm = text.slice(0, colon)
  if (!isDigestAlgorithm(algorithm)) return true
  return text.length - colon - 1 === hexLength[algorithm] && lowerHex.test(text.slice(colon + 1))
}

export function isSupported(digest: WellFormedDigest): digest is Digest {
  return digest.startsWith('sha256:') || digest.startsWith('sha512:')
}

export function algorithmOf(digest: Digest): DigestAlgorithm {
  return digest.startsWith('sha256:') ? 'sha256' : 'sha512'
}

export function digestFromHex(algorithm: DigestAlgorithm, hex: string): Digest {
  return parseDigest(`${algorithm}:${hex}`)
}
