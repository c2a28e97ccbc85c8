// The S3 client as the tests make it, with a clock whose waits end at once.
import { FixedCredentials } from '../../../src/adapters/blobs-s3/credentials.ts'
import type { S3Time } from '../../../src/adapters/blobs-s3/request-sender.ts'
import { S3Client, type S3ClientSettings } from '../../../src/adapters/blobs-s3/s3-client.ts'
import { type S3Body, toBody } from '../../../src/adapters/blobs-s3/s3-request.ts'
import { S3Error } from '../../../src/adapters/blobs-s3/s3-response.ts'
import { errorOf } from '../basics/outcomes.ts'

/** Writes down how long it was to sleep, and goes on. */
export class TestTime implements S3Time {
  readonly sleeps: number[] = []
  /** What `random` gives. */
  chance = 1
  offsetMs = 0

  now(): number {
    return Date.now() + this.offsetMs
  }

  async sleep(ms: number): Promise<void> {
    this.sleeps.push(ms)
  }

  random(): number {
    return this.chance
  }
}

export const testSecret = 'secret+of/the/test'

export function openS3Client(
  endpoint: string,
  more: Partial<S3ClientSettings> = {},
  time: S3Time = new TestTime(),
): S3Client {
  return new S3Client(
    {
      endpoint,
      publicEndpoint: undefined,
      region: 'eu-test-1',
      bucket: 'layers',
      isPathStyle: true,
      credentials: new FixedCredentials('TESTKEY', testSecret, undefined),
      checksum: 'sha256',
      encryption: 'none',
      kmsKeyId: undefined,
      attemptTimeoutMs: 5_000,
      triesMax: 4,
      requestsMax: 8,
      queueMax: 100,
      ...more,
    },
    time,
  )
}

export function bodyOf(bytes: Uint8Array | string): S3Body {
  return toBody(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
}

export function errorXml(code: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>no</Message></Error>`
}

export async function s3ErrorOf(promise: Promise<unknown>): Promise<S3Error> {
  const error = await errorOf(promise)
  if (error instanceof S3Error) return error
  throw error
}

export async function readAll(stream: ReadableStream<Uint8Array> | undefined): Promise<Buffer> {
  if (stream === undefined) throw new Error('there is nothing to read')
  const chunks: Uint8Array[] = []
  // A chunk is valid until the next one is requested.
  for await (const chunk of stream) chunks.push(new Uint8Array(chunk))
  return Buffer.concat(chunks)
}
