import type { BlobStore } from './blob-store.ts'
import type { Clock } from './clock.ts'
import type { DiskSpace } from './disk-space.ts'
import type { MetadataStore } from './metadata-store.ts'

/** All that the registry's deeds may need of the world. Each deed names its own part of it. */
export interface Ports {
  readonly blobs: BlobStore
  readonly metadata: MetadataStore
  readonly clock: Clock
  readonly disk: DiskSpace
}
