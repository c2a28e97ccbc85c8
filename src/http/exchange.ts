import type { FailureLimits } from '../identity/failure-limits.ts'
import type { KeyRing } from '../identity/key-ring.ts'
import type { RoleMap } from '../identity/rights.ts'
import type { ScopedTokens } from '../identity/scoped-tokens.ts'
import type { Tokens } from '../identity/tokens.ts'
import type { ByteBudget } from '../lib/byte-budget.ts'
import type { ByteSource } from '../lib/byte-source.ts'
import type { LostBytes } from '../oci/errors.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { Account } from '../ports/accounts.ts'
import type { BlobStore } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { DiskSpace } from '../ports/disk-space.ts'
import type { CachingIdentity, Principal } from '../ports/identity.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { Scope } from '../ports/repositories.ts'
import type { RegistrySettings } from '../registry/settings.ts'
import type { UploadWriters } from '../registry/upload-writers.ts'
import type { Authenticator } from './authenticator.ts'
import type { PresentedCredential } from './credentials.ts'
import type { RegistryMount } from './mounts.ts'
import type { PeerSettings, Peers } from './peers.ts'
import type { Redirects } from './redirects.ts'
import type { RequestTarget } from './request-target.ts'
import type { PathValues } from './route-pattern.ts'

/** What the mouth needs to know of its surroundings. */
export interface HttpSettings extends PeerSettings {
  readonly hasRootMount: boolean
  /** Of another identity service than the embedded one. */
  readonly authUrl: string | undefined
  readonly serviceName: string
  readonly version: string
  /** Where the start page leads readers, beside the OpenAPI document. */
  readonly docsUrl: string | undefined
  /** What strangers are asked for at the registry. */
  readonly challenge: 'basic' | 'bearer'
  readonly bodyBytesPerSecondMin: number
  readonly bodyWindowMs: number
}

/** All that handlers can reach; each deed takes of it what its own type names. */
export interface Application {
  readonly blobs: BlobStore
  readonly metadata: MetadataStore
  readonly disk: DiskSpace
  readonly settings: RegistrySettings
  readonly http: HttpSettings
  /** Where clients are sent to the blob store itself. */
  readonly redirects: Redirects | undefined
  readonly writers: UploadWriters
  readonly identity: CachingIdentity
  readonly failures: FailureLimits
  /** Who strangers are, where some repositories are open to them. */
  readonly anonymous: Principal | undefined
  readonly scopedTokens: ScopedTokens
  /** The embedded identity service, if it is ours to run. */
  readonly embedded: EmbeddedIdentityService | undefined
  readonly clock: Clock
  /** What all requests together may keep in memory. */
  readonly memory: ByteBudget
  /** Whether the process was told to stop: it still serves, and asks nobody to come back. */
  isLeaving(): boolean
}

export interface EmbeddedIdentityService {
  readonly tokens: Tokens
  readonly keys: KeyRing
  readonly roles: RoleMap
  readonly keysPerUserMax: number
  readonly usersPerAccountMax: number
}

/** One request, before it is known who asks. */
export interface Exchange {
  readonly app: Application
  readonly request: Request
  readonly method: string
  readonly target: RequestTarget
  readonly path: PathValues
  readonly peers: Peers
  readonly authenticator: Authenticator
  readonly presented: PresentedCredential | undefined
  /** The request's body, to be read once. */
  readonly body: () => ByteSource
  /**
   * Before so many bytes of the body are read into memory, or of an answer gathered there. Waits for a bounded time, then
   * rejects with `Unavailable`. The memory is given back when the answer is sent.
   */
  readonly reserve: (bytes: number) => Promise<void>
  /** Writes a line to the log: stored bytes were found lost, and the request goes on. */
  readonly noteLoss: (lost: LostBytes) => void
}

/** One request of a known caller. */
export interface CallerExchange extends Exchange {
  readonly principal: Principal
}

/** One request to the registry interface, of a caller whose account is enabled. */
export interface RegistryExchange extends CallerExchange {
  readonly account: Account
  readonly mount: RegistryMount
}

/** One request about a repository, which the caller may do what the route says. */
export interface RepositoryExchange extends RegistryExchange {
  readonly repository: RepositoryName
  readonly scope: Scope
}
