import type { AttemptLimits } from '../identity/failure-limits.ts'
import type { KeyRing } from '../identity/key-ring.ts'
import type { RoleMap } from '../identity/rights.ts'
import type { ScopedTokens } from '../identity/scoped-tokens.ts'
import type { Tokens } from '../identity/tokens.ts'
import type { ByteBudget } from '../lib/byte-budget.ts'
import type { ByteSource } from '../lib/byte-source.ts'
import type { TextSealer } from '../lib/text-sealer.ts'
import { type LostBytes, RegistryRefusal } from '../oci/errors.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { Account } from '../ports/accounts.ts'
import type { BlobStore } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { DiskSpace } from '../ports/disk-space.ts'
import type { CachingIdentity, Principal } from '../ports/identity.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RepositoryKey } from '../ports/repositories.ts'
import type { AuditRecorder } from '../registry/audit.ts'
import type { PullRecorder } from '../registry/pulls.ts'
import type { RegistrySettings } from '../registry/settings.ts'
import type { UploadWriters } from '../registry/upload-writers.ts'
import type { WebhookParts } from '../registry/webhooks.ts'
import type { Authenticator } from './authenticator.ts'
import type { PresentedCredential } from './credentials.ts'
import type { RegistryMount } from './mounts.ts'
import type { PeerSettings, Peers } from './peers.ts'
import type { Redirects } from './redirects.ts'
import type { RequestTarget } from './request-target.ts'
import type { PathValues } from './route-pattern.ts'

/** The settings of the transport. */
export interface HttpSettings extends PeerSettings {
  readonly hasRootMount: boolean
  /** The address of the identity service, if it is not the embedded one. */
  readonly authUrl: string | undefined
  readonly serviceName: string
  readonly version: string
  /** The address of the documentation, for the start page. */
  readonly docsUrl: string | undefined
  /** The challenge that callers without valid credentials get in the registry interface. */
  readonly challenge: 'basic' | 'bearer'
  readonly bodyBytesPerSecondMin: number
  readonly bodyWindowMs: number
}

/** Everything that handlers can use. A use case takes the parts that the type of its first parameter lists. */
export interface Application {
  readonly blobs: BlobStore
  readonly metadata: MetadataStore
  readonly disk: DiskSpace
  readonly settings: RegistrySettings
  readonly http: HttpSettings
  /** Undefined unless `storage.redirect` is on. */
  readonly redirects: Redirects | undefined
  readonly writers: UploadWriters
  readonly pulls: PullRecorder
  readonly audit: AuditRecorder
  readonly identity: CachingIdentity
  readonly failures: AttemptLimits
  /** The principal of anonymous callers, if some repositories are open to them. */
  readonly anonymous: Principal | undefined
  readonly scopedTokens: ScopedTokens
  /** Undefined if the registry uses another identity service. */
  readonly embedded: EmbeddedIdentityService | undefined
  readonly clock: Clock
  /** Seals numbers of rows, which are counted for all accounts together. */
  readonly sealer: TextSealer
  readonly webhooks: WebhookParts
  /** The memory that all requests together may use. */
  readonly memory: ByteBudget
  /** Whether the process is shutting down: it still answers, and closes every connection after the answer. */
  isLeaving(): boolean
}

export interface EmbeddedIdentityService {
  readonly tokens: Tokens
  readonly keys: KeyRing
  readonly roles: RoleMap
  readonly keysPerUserMax: number
  readonly usersPerAccountMax: number
}

/** For routes with `onlyWith: 'embedded identity'`. They are unknown if the registry uses another identity service. */
export function getEmbeddedIdentity({ embedded }: Pick<Application, 'embedded'>): EmbeddedIdentityService {
  if (embedded === undefined) throw new RegistryRefusal('route-unknown')
  return embedded
}

/** One request, whose caller need not be known. */
export interface Exchange {
  readonly app: Application
  readonly request: Request
  readonly method: string
  readonly target: RequestTarget
  readonly path: PathValues
  readonly peers: Peers
  readonly authenticator: Authenticator
  /** The credential of the request, if it has one. */
  readonly present: () => PresentedCredential | undefined
  /** The request's body, to be read once. */
  readonly body: () => ByteSource
  /**
   * Reserves memory before as many bytes of the body are read, or of an answer are collected. Waits for a bounded time,
   * then rejects with `Unavailable`. The memory is released when the answer has been sent.
   */
  readonly reserve: (bytes: number) => Promise<void>
  /** Logs that stored bytes were found lost, and lets the request continue. */
  readonly noteLoss: (lost: LostBytes) => void
}

/** One request of a known caller. */
export interface CallerExchange extends Exchange {
  readonly principal: Principal
}

/** One request of a caller whose account is enabled. */
export interface RegistryExchange extends CallerExchange {
  readonly account: Account
  /** The mount of the request. For a request outside of the registry interface: the mount at the same prefix. */
  readonly mount: RegistryMount
}

/** One request for a repository on which the caller has the right of the route. */
export interface RepositoryExchange extends RegistryExchange {
  readonly repository: RepositoryName
  readonly repositoryKey: RepositoryKey
}
