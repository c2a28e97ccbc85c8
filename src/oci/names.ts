import { type Digest, isDigest, parseDigest } from './digest.ts'
import { RegistryRefusal } from './errors.ts'

/** The name of a repository, such as `library/alpine`. Only `parseRepositoryName` and `isRepositoryName` create it. */
export type RepositoryName = string & { readonly __brand: 'RepositoryName' }
export type Tag = string & { readonly __brand: 'Tag' }

/** The last part of the path of a manifest. */
export type Reference = { readonly tag: Tag } | { readonly digest: Digest }

// Many clients limit host and name together to 255 characters, so they could not pull a longer name.
export const nameLengthMax = 255
export const tagPattern = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/

// distribution-spec, "Pulling manifests": `<name>`. Anchored: the same grammar without anchors is quadratic.
export const namePattern = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/

export function isRepositoryName(text: string): text is RepositoryName {
  return text.length <= nameLengthMax && namePattern.test(text)
}

export function parseRepositoryName(text: string): RepositoryName {
  if (isRepositoryName(text)) return text
  throw new RegistryRefusal('name-invalid', { name: text.slice(0, nameLengthMax) })
}

function isTag(text: string): text is Tag {
  return tagPattern.test(text)
}

export function parseTag(text: string): Tag {
  if (isTag(text)) return text
  throw new RegistryRefusal('tag-invalid', { tag: text.slice(0, nameLengthMax) })
}

/** For reads: undefined if no manifest can have this reference. */
export function findReference(text: string): Reference | undefined {
  if (text.includes(':')) return isDigest(text) ? { digest: text } : undefined
  return isTag(text) ? { tag: text } : undefined
}

/** distribution-spec: a reference that contains a colon is a digest. */
export function parseReference(text: string): Reference {
  return text.includes(':') ? { digest: parseDigest(text) } : { tag: parseTag(text) }
}
