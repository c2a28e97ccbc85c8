import { RegistryRefusal } from './errors.ts'

/** A digest of an algorithm that we can compute: `sha256:<64 hex>` or `sha512:<128 hex>`. */
export type Digest = string & { readonly __brand: 'Digest' }

/**
 * A digest whose form is right but whose algorithm may be one that we do not compute (`blake3:...`). A subject may have
 * such a digest, and may be asked for; nothing of ours can ever match it.
 */
export type WellFormedDigest = Digest | (string & { readonly __brand: 'WellFormedDigest' })

export type DigestAlgorithm = 'sha256' | 'sha512'

/** How many hexadecimal digits a digest has. */
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

/** A digest that content can be stored under; anything else is refused. */
export function parseDigest(text: string): Digest {
  const digest = parseWellFormedDigest(text)
  if (isSupported(digest)) return digest
  throw new RegistryRefusal('digest-unsupported', { digest: text })
}

/** Whether content can be stored under it. */
export function isDigest(text: string): text is Digest {
  return isWellFormedDigest(text) && isSupported(text)
}

/** A digest of any algorithm; of the registered ones only with an encoding of the right length and letters. */
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

/** The digest that a finished hash stands for. */
export function digestFromHex(algorithm: DigestAlgorithm, hex: string): Digest {
  return parseDigest(`${algorithm}:${hex}`)
}
