// A server in this process whose blobs are in an S3 store of the test's making: behind a proxy, with pieces of any size,
// with metadata that a test holds or breaks. What it does in the background is done when the test says so.
import type { S3BlobStore, S3BlobStoreSettings } from '../../../src/adapters/blobs-s3/s3-blob-store.ts'
import type { MetadataStore } from '../../../src/ports/metadata-store.ts'
import { collectGarbage, sweepOrphans } from '../../../src/registry/garbage.ts'
import type { S3Server } from '../s3/s3-server.ts'
import { openS3Store, s3StoreSettings, smallPlan } from '../s3/s3-store.ts'
import { assembleServer } from '../server/moved-server.ts'
import { auditObjects } from './s3-audit.ts'

const kibi = 1024
const hourMs = 3_600_000

/** Pieces of 64 KiB, for a server that takes them: all that happens to a large layer happens to 200 KiB. */
export const tinyPlan = {
  steps: [{ parts: 10_000, sizeBytes: 64 * kibi }],
  minBytes: 32 * kibi,
  memoryMax: 64 * kibi,
}

export interface WorldOptions {
  readonly server: S3Server
  /** Where the registry reaches it, if something stands in between. */
  readonly url?: string
  readonly dataDir: string
  readonly store?: Partial<S3BlobStoreSettings>
  readonly wrap?: (metadata: MetadataStore) => MetadataStore
  /** Of another world, for a second server on the same stores. */
  readonly prefix?: string
}

export interface S3World {
  readonly url: string
  readonly prefix: string
  readonly dataDir: string
  readonly metadata: MetadataStore
  /** As the server has it. */
  readonly blobs: S3BlobStore
  /** The same objects, past what stands in between. */
  readonly direct: S3BlobStore
  /** Unused data is removed at once; blobs that no manifest needs have this lease. */
  collect(leaseMs?: number): Promise<void>
  /** The same, with what no row names. Gives how many objects that were. */
  sweep(): Promise<number>
  /** What must not be: see s3-audit.ts. */
  audit(): Promise<string[]>
  stop(): Promise<void>
}

export async function openS3World(options: WorldOptions): Promise<S3World> {
  const { server, dataDir, wrap = (metadata: MetadataStore) => metadata } = options
  const settings = s3StoreSettings(server, dataDir, {
    plan: server.name === 'stub' ? tinyPlan : smallPlan,
    ...(options.prefix !== undefined && { prefix: options.prefix }),
    ...options.store,
  })
  // Blobs of any size are objects, because these tests are about S3.
  const objectsOnly = { BERTH_STORAGE__INLINE_BYTES: '0' }
  const blobs = openS3Store({ ...settings, endpoint: options.url ?? settings.endpoint })
  const direct = openS3Store({ ...settings, attemptTimeoutMs: 10_000 })
  const http = await assembleServer(dataDir, {
    settings: objectsOnly,
    change: ({ metadata }) => ({ metadata: wrap(metadata), blobs }),
  })
  const { metadata } = http.unchanged
  const ages = {
    quarantineMs: 0,
    uploadIdleMs: 0,
    uploadMaxMs: 0,
    uploadDoneMs: 0,
    untaggedMs: 0,
    undeleteMs: 0,
    tagHistoryMs: 0,
    holdMs: 0,
  }
  const collect = async (leaseMs = hourMs): Promise<void> => {
    await collectGarbage({ metadata, blobs }, { ...ages, leaseMs })
  }
  return {
    url: http.url,
    prefix: settings.prefix,
    dataDir,
    metadata,
    blobs,
    direct,
    collect,
    async sweep() {
      await collect()
      const strays = await sweepOrphans({ metadata, blobs }, 0)
      await collect()
      return strays
    },
    audit: () => auditObjects(dataDir, direct),
    async stop() {
      await http.stop()
      await blobs.close()
      await direct.close()
    },
  }
}
