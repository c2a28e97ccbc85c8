// The S3 blob store of the product over the S3 server of the tests, in a part of the bucket that no other test uses.
import { join } from 'node:path'
import { FixedCredentials } from '../../../src/adapters/blobs-s3/credentials.ts'
import { type PartPlan, usualPlan } from '../../../src/adapters/blobs-s3/part-buffers.ts'
import { S3BlobStore, type S3BlobStoreSettings } from '../../../src/adapters/blobs-s3/s3-blob-store.ts'
import type { S3Server } from './s3-server.ts'
import { freshPrefix } from './test-s3.ts'

const mebi = 1024 * 1024

/** All three sizes of pieces within 40 MiB, each of them of a size that every S3 server takes. */
export const smallPlan: PartPlan = {
  steps: [
    { parts: 2, sizeBytes: 5 * mebi },
    { parts: 2, sizeBytes: 6 * mebi },
    { parts: 9_996, sizeBytes: 7 * mebi },
  ],
  minBytes: 5 * mebi,
  memoryMax: 6 * mebi,
}

export function s3StoreSettings(
  server: Omit<S3Server, 'stop' | 'name' | 'version'>,
  folder: string,
  more: Partial<S3BlobStoreSettings> = {},
): S3BlobStoreSettings {
  return {
    endpoint: server.url,
    publicEndpoint: undefined,
    region: server.region,
    bucket: server.bucket,
    isPathStyle: server.isPathStyle,
    prefix: freshPrefix(),
    credentials: new FixedCredentials(server.accessKey, server.secretKey, undefined),
    checksum: 'sha256',
    encryption: 'none',
    kmsKeyId: undefined,
    attemptTimeoutMs: 10_000,
    triesMax: 4,
    requestsMax: 64,
    queueMax: 1_000,
    memoryBuffersMax: 16,
    spoolFolder: join(folder, 'spool'),
    plan: usualPlan,
    ...more,
  }
}

export function openS3Store(settings: S3BlobStoreSettings): S3BlobStore {
  return new S3BlobStore(settings)
}
