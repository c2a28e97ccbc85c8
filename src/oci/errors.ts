/**
 * The messages of all refusals. Clients show them to people: they are lower case, have no full stop, name the object, and
 * contain nothing internal. `http/error-body.ts` defines the status and the OCI error code of each refusal.
 *
 * These messages are the text of the OCI specification, so that people find them there: `unauthenticated`, `denied`,
 * `name-invalid`, `name-unknown`, `digest-mismatch`, `manifest-unknown`, `manifest-invalid`, `blob-unknown` and
 * `upload-unknown`.
 */
export const refusalWords = {
  // authentication and authorisation
  unauthenticated: 'authentication required',
  'credentials-invalid': 'the credentials are wrong, malformed, repeated or no longer valid',
  'cross-site-request': 'a cookie does not authorise requests that come from another site',
  denied: 'requested access to the resource is denied',
  'scope-insufficient': 'requested access to the resource is denied to this token',
  'account-disabled': 'the registry is disabled for this account',
  'account-suspended': 'the operator of this registry has suspended the account',
  'read-only': 'the registry is being moved to other stores and accepts no changes',
  'quota-exceeded': 'quota exceeded',
  'disk-low': 'pushes are refused: a disk has less free space than storage.min_free; an operator must free space',
  'login-invalid': 'user name or password is wrong',
  'too-many-failures': 'too many bad credentials; try again later',
  // users and keys of the embedded identity service
  'identity-invalid': 'the user or the key is not valid',
  'user-unknown': 'no such user',
  'user-exists': 'a user with this name already exists',
  'key-unknown': 'no such key',
  'key-exists': 'the user already has a key with this name',
  'too-many-keys': 'the user has reached the limit of keys (limits.keys_per_user)',
  'too-many-users': 'the account has reached its limit of users (limits.users_per_account)',
  'last-operator': 'the account would have no user with the right operate',
  // webhooks
  'webhook-unknown': 'no such webhook',
  'webhook-exists': 'the account already has a webhook with this name',
  'too-many-webhooks': 'the account has reached its limit of webhooks (webhooks.per_account)',
  'delivery-unknown': 'no such delivery',
  // what the request itself looks like
  'route-unknown': 'no such endpoint',
  'method-unsupported': 'the method is not supported here',
  'host-invalid': 'the Host header is repeated or invalid',
  'path-invalid': 'the path contains an empty or encoded segment',
  'uri-too-long': 'the request address is too long',
  'content-encoding-unsupported': 'an encoded request body is not accepted',
  'body-invalid': 'the request body is not valid',
  'body-incomplete': 'the request body ended early',
  'body-too-slow': 'the request body arrives too slowly',
  'query-invalid': 'a query parameter is not valid',
  'page-size-invalid': 'n must be a whole number, 0 or more',
  'sort-invalid': 'sort must be name, size, pushed or pulled',
  // names and digests
  'name-invalid': 'invalid repository name',
  'name-unknown': 'repository name not known to registry',
  'path-unknown': 'not found: the path contains an empty or encoded segment',
  'tag-invalid': 'invalid tag',
  'too-many-tags': 'too many tag parameters',
  'tag-immutable':
    'the tag exists and is immutable: push another tag, or let a caller with the right operate delete it',
  'tag-history-unknown': 'the history of the tag does not tell this',
  'time-invalid': 'a time must have the form 2030-01-31T12:00:00Z',
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
  'content-length-mismatch': 'the body does not have the announced length',
  'too-many-uploads': 'too many unfinished uploads in this repository; finish or cancel some',
} as const

export type Refusal = keyof typeof refusalWords

/** Details such as the digest or the offset. The caller sees them as `detail`. */
export type RefusalDetail = Readonly<Record<string, unknown>>

/** The request asked for something that is not possible. Parsers and use cases throw it; the pipeline answers it. */
export class RegistryRefusal extends Error {
  override readonly name = 'RegistryRefusal'
  readonly refusal: Refusal
  /** One entry for each problem. Most refusals have none or one. */
  readonly details: readonly RefusalDetail[]

  constructor(refusal: Refusal, ...details: readonly RefusalDetail[]) {
    super(refusalWords[refusal])
    this.refusal = refusal
    this.details = details
  }
}

/** The refusal in one line: `roles[1]: must be ...` for an invalid field, otherwise the message and the first reason. */
export function describeRefusal({ message, details }: RegistryRefusal): string {
  const { field, reason } = details[0] ?? {}
  if (typeof reason !== 'string') return message
  return `${typeof field === 'string' ? field : message}: ${reason}`
}

/** A blob whose stored object is missing or has another size than its row. */
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

/** This request found that the bytes of the blob are lost, and marked the blob as absent. It is logged once. */
export class BytesLost extends RegistryRefusal {
  readonly lost: LostBlob

  constructor(lost: LostBlob) {
    super('blob-unknown', { digest: lost.digest })
    this.lost = lost
  }
}

/** The stored bytes of an upload can never be completed. The client must send them again from the first byte. */
export class Spoiled extends Error {
  override readonly name = 'Spoiled'
}

/** What can be unavailable, and its name in messages. */
const dependencyNames = {
  'blob-store': 'the blob store',
  disk: 'the disk',
  'identity-service': 'the identity service',
  'login-slots': 'the login (too many at once)',
  'metadata-store': 'the metadata store',
  'part-buffers': 'the disk for part buffers of uploads',
  'request-memory': 'memory for this request',
  server: 'the server (it is shutting down)',
  'signing-keys': 'the signing keys',
} as const

/** A dependency failed: a disk, a database or another service. The caller may try again. Only the log contains the cause. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable'
  readonly dependency: keyof typeof dependencyNames

  /** `end`: which of the two stores of a move it is. */
  constructor(dependency: Unavailable['dependency'], options?: { readonly cause?: unknown; readonly end?: string }) {
    const ofEnd = options?.end === undefined ? '' : ` of the ${options.end}`
    super(`${dependencyNames[dependency]}${ofEnd} is unavailable`, options)
    this.dependency = dependency
  }
}
