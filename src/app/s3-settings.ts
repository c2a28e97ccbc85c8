import { join } from 'node:path'
import type { S3BlobStoreSettings } from '../adapters/blobs-s3/s3-blob-store.ts'
import { chooseCredentials } from '../adapters/blobs-s3/s3-credentials.ts'
import type { Config } from './settings.ts'

/** What the S3 store is told; undefined where there is none. */
export function s3Settings(config: Config): S3BlobStoreSettings | undefined {
  const { bucket, s3Region: region } = config
  if (bucket === undefined) return undefined
  return {
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
    readerPace: { bytesPerSecondMin: config.bodyBytesPerSecond, windowMs: config.bodyWindowMs },
    piecesMax: config.s3Buffers,
    spoolFolder: join(config.dataDir, 'spool'),
  }
}
