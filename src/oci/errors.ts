/**
 * Every way to say no, by name, with its words. The words are shown to people by their clients: lower case, no dot at
 * the end, the thing named, nobody blamed, nothing internal. Which status and which code of the specification a refusal
 * gets is the business of `http/error-body.ts` alone.
 */
export const refusalWords = {
  // who is calling, and may they
  unauthenticated: 'authentication required',
  'credentials-invalid': 'the credentials are wrong, malformed, repeated or no longer valid',
  'cross-site-request': 'a cookie does not authorise requests that come from another site',
  denied: 'requested access to the resource is denied',
  'scope-insufficient': 'requested access to the resource is denied to this token',
  'account-disabled': 'the registry is disabled for this account',
  'account-suspended': 'the operator of this registry has suspended the account',
  'read-only': 'the registry is being moved and takes no changes',
  'disk-low': 'no pushes: a disk is below storage.min_free; an operator must free space',
  'login-invalid': 'user name or password is wrong',
  'too-many-failures': 'too many bad credentials; try again later',
  // users and keys of the embedded identity service
  'identity-invalid': 'the user or the key is not valid',
  'user-unknown': 'no such user',
  'user-exists': 'there is a user of that name already',
  'key-unknown': 'no such key',
  'key-exists': 'the user has a key of that name already',
  'too-many-keys': 'the user has reached the limit of keys (limits.keys_per_user)',
  'too-many-users': 'the account has reached its limit of users (limits.users_per_account)',
  'last-operator': 'no other user of the account has the right operate',
  // what the request itself looks like
  'route-unknown': 'no such endpoint',
  'method-unsupported': 'the method is not supported here',
  'host-invalid': 'the host is given twice, or is none',
  'path-invalid': 'the path holds an empty or encoded segment',
  'uri-too-long': 'the request address is too long',
  'content-encoding-unsupported': 'an encoded request body is not accepted',
  'body-invalid': 'the request body is not valid',
  'body-incomplete': 'the request body ended early',
  'body-too-slow': 'the request body arrives too slowly',
  'page-size-invalid': 'n must be a whole number, 0 or more',
  // names and digests
  'name-invalid': 'invalid repository name',
  'name-unknown': 'repository name not known to registry',
  'path-unknown': 'nothing is there: the path holds an empty or encoded segment',
  'tag-invalid': 'invalid tag',
  'too-many-tags': 'too many tag parameters',
  'digest-invalid': 'provided digest is not valid',
  'digest-unsupported': 'the digest algorithm is not supported; use sha256 or sha512',
  'digest-mismatch': 'provided digest did not match uploaded content',
  // manifests
  'manifest-unknown': 'manifest unknown to registry',
  'manifest-invalid': 'manifest invalid',
  'manifest-type-unsupported': 'the manifest media type is not accepted',
  'manifest-too-large': 'manifest exceeds the size limit',
  'manifest-blob-unknown': 'manifest references content unknown to the repository',
  'manifest-in-use': 'the manifest is still listed by an index of this repository',
  // blobs and uploads
  'blob-unknown': 'blob unknown to registry',
  'blob-in-use': 'the blob is still used by a manifest of this repository',
  'blob-too-large': 'blob exceeds the size limit',
  'range-unsatisfiable': 'the range lies outside the blob',
  'upload-unknown': 'blob upload unknown to registry',
  'upload-out-of-order': 'the chunk does not start where the upload ends',
  'upload-busy': 'another request is writing to this upload',
  'content-range-invalid': 'content range must be <first>-<last>',
  'content-length-mismatch': 'the body has not the length that was announced',
  'too-many-uploads': 'too many unfinished uploads in this repository; finish or cancel some',
} as const

export type Refusal = keyof typeof refusalWords

/** More than the words: which digest, which offset. Shown to the caller as `detail`. */
export type RefusalDetail = Readonly<Record<string, unknown>>

/** The caller asked for what cannot be. Thrown by parsers and deeds, answered in one place. */
export class RegistryRefusal extends Error {
  override readonly name = 'RegistryRefusal'
  readonly refusal: Refusal
  /** One entry a fault; most refusals have none or one. */
  readonly details: readonly RefusalDetail[]

  constructor(refusal: Refusal, ...details: readonly RefusalDetail[]) {
    super(refusalWords[refusal])
    this.refusal = refusal
    this.details = details
  }
}

/**
 * The refusal in one line, with its first reason. Of a field at fault: `roles[1]: must be ...`; otherwise the words of the
 * refusal and then the reason.
 */
export function describeRefusal({ message, details }: RegistryRefusal): string {
  const { field, reason } = details[0] ?? {}
  if (typeof reason !== 'string') return message
  return `${typeof field === 'string' ? field : message}: ${reason}`
}

/** A blob whose stored bytes are missing, or not as many as its row says. */
export interface LostBlob {
  readonly repository: string
  readonly digest: string
  readonly storageKey: string
}

/** An unfinished upload whose acknowledged bytes are missing. */
export interface LostUpload {
  readonly repository: string
  readonly upload: string
  readonly storageKey: string
}

export type LostBytes = LostBlob | LostUpload

/** The blob counts as absent from now on, because this request found that its bytes are lost. The log is told, once. */
export class BytesLost extends RegistryRefusal {
  readonly lost: LostBlob

  constructor(lost: LostBlob) {
    super('blob-unknown', { digest: lost.digest })
    this.lost = lost
  }
}

/** What was stored of an upload can never become whole: it has to be sent again from its first byte. */
export class Spoiled extends Error {
  override readonly name = 'Spoiled'
}

/** The world failed: a disk, a database, another service. The caller may try again; the cause is for the log alone. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable'
  readonly what: string

  constructor(what: string, options?: { readonly cause?: unknown }) {
    super(`${what} is unavailable`, options)
    this.what = what
  }
}
