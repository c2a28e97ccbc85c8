import { join } from 'node:path'
import { chooseCredentials } from '../adapters/blobs-s3/credentials.ts'
import { S3BlobStore } from '../adapters/blobs-s3/s3-blob-store.ts'
import type { DiskSpace } from '../ports/disk-space.ts'
import { namesProxy } from './config.ts'
import type { Config } from './settings.ts'

/** Loaded only where S3 is configured, with the adapter that it imports. */
export function openS3BlobStore(config: Config, bucket: string, disk: DiskSpace | undefined): S3BlobStore {
  const { s3Region: region } = config
  return new S3BlobStore({
    bucket,
    region,
    endpoint: config.s3Endpoint ?? `https://s3.${region}.amazonaws.com`,
    publicEndpoint: config.s3PublicEndpoint,
    isPathStyle: config.s3PathStyle,
    prefix: config.s3Prefix,
    credentials: chooseCredentials(config),
    checksum: config.s3Checksum,
    encryption: config.s3Encryption,
    kmsKeyId: config.s3KmsKey,
    attemptTimeoutMs: config.s3TimeoutMs,
    triesMax: config.s3Tries,
    requestsMax: config.s3Requests,
    queueMax: config.s3Queue,
    usesProxy: namesProxy(),
    readerPace: { bytesPerSecondMin: config.bodyBytesPerSecond, windowMs: config.bodyWindowMs },
    memoryBuffersMax: config.s3Buffers,
    spoolFolder: join(config.dataDir, 'spool'),
    disk,
  })
}
