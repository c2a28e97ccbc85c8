import type { ByteRange } from '../../ports/blob-store.ts'
import { type DownloadPlace, DownloadPlaces, type ReaderPace } from './download-places.ts'
import { S3Address } from './s3-address.ts'
import { crc32Of, type S3Body } from './s3-body.ts'
import { type S3CallSettings, S3Calls, type S3Time, systemTime } from './s3-calls.ts'
import { completeUpload, partTag } from './s3-complete.ts'
import { downloadOf } from './s3-download.ts'
import type { S3Exchange } from './s3-exchange.ts'
import { S3Fault } from './s3-fault.ts'
import {
  type ListedObject,
  type ListedUpload,
  listObjects,
  listUploads,
  malformed,
  readDocument,
  required,
  toSize,
} from './s3-lists.ts'
import { SignatureV4 } from './signature-v4.ts'

export type { S3Body } from './s3-body.ts'

export interface S3ClientSettings extends S3CallSettings {
  /** Where others reach the bucket: for addresses that are given to them. */
  readonly publicEndpoint: string | undefined
  /** Asked for with each object; none: as the bucket has it. */
  readonly encryption: 'none' | 'AES256' | 'aws:kms'
  readonly kmsKeyId: string | undefined
  /** What readers have to take while others wait to be readers; without it, they take what they like. */
  readonly readerPace?: ReaderPace
}

/** Downloads last as long as their readers like: they get no more than this part of the requests. */
const downloadShare = 0.75

const lifetimeMaxSeconds = 7 * 24 * 3600
/** An address ends with the credentials that sign it, and its client has to get there first. */
const credentialsMinMs = 60_000

/**
 * One bucket. Throws `S3Fault` for what S3 refused or what failed, and `NoSlot` where too many wait already. Calls that can
 * be repeated are; `s3-calls.ts` says when.
 */
export class S3Client {
  readonly #settings: S3ClientSettings
  readonly #calls: S3Calls
  readonly #places: DownloadPlaces
  readonly #publicAddress: S3Address
  readonly #publicSignature: SignatureV4

  constructor(settings: S3ClientSettings, time: S3Time = systemTime) {
    this.#settings = settings
    this.#calls = new S3Calls(settings, time)
    this.#places = new DownloadPlaces({
      placesMax: Math.max(1, Math.floor(settings.requestsMax * downloadShare)),
      queueMax: settings.queueMax,
      waitMaxMs: settings.attemptTimeoutMs,
      pace: settings.readerPace,
    })
    const endpoint = settings.publicEndpoint ?? settings.endpoint
    this.#publicAddress = new S3Address({ ...settings, endpoint })
    this.#publicSignature = new SignatureV4(settings.region)
  }

  async put(name: string, body: S3Body): Promise<void> {
    const headers = { ...this.#encryptionHeaders(), ...(await this.#checksumHeaders(body)) }
    await this.#calls.send({ operation: 'PutObject', method: 'PUT', name, headers, body })
  }

  /**
   * For readers that take their time, and a download's place for it. Undefined: there is no such object, or it is not of
   * `sizeBytes` bytes.
   */
  async open(name: string, sizeBytes: number, range?: ByteRange): Promise<ReadableStream<Uint8Array> | undefined> {
    const place = await this.#places.take()
    return this.#download(name, sizeBytes, range, place)
  }

  /**
   * The same for ourselves, who take it as fast as it comes: that is over as soon as any other request, and needs no place
   * that readers hold. It has to be read to its end, or cancelled.
   */
  read(name: string, sizeBytes: number, range?: ByteRange): Promise<ReadableStream<Uint8Array> | undefined> {
    return this.#download(name, sizeBytes, range, undefined)
  }

  async #download(
    name: string,
    sizeBytes: number,
    range: ByteRange | undefined,
    place: DownloadPlace | undefined,
  ): Promise<ReadableStream<Uint8Array> | undefined> {
    const wanted = range ?? { first: 0, last: sizeBytes - 1 }
    let release: (() => void) | undefined
    const finish = (): void => {
      release?.()
      place?.leave()
    }
    try {
      release = await this.#calls.takeSlot()
      const begun = await this.#begin(name, sizeBytes, wanted, this.#settings.triesMax)
      if (begun === undefined || wanted.last < wanted.first) {
        begun?.abandon()
        finish()
        return begun && new Blob([]).stream()
      }
      return downloadOf(begun, wanted, {
        reopen: (rest) => this.#begin(name, sizeBytes, rest, 1),
        pause: (tries, fault) => this.#calls.pause(tries, fault),
        waitMs: this.#settings.attemptTimeoutMs,
        triesMax: this.#settings.triesMax,
        place,
        finish,
      })
    } catch (error) {
      finish()
      throw error
    }
  }

  async #begin(
    name: string,
    sizeBytes: number,
    { first, last }: ByteRange,
    triesMax: number,
  ): Promise<S3Exchange | undefined> {
    const operation = 'GetObject'
    const isWhole = first === 0 && last === sizeBytes - 1
    const headers: Record<string, string> = isWhole ? {} : { range: `bytes=${first}-${last}` }
    const exchange = await unlessAbsent(
      this.#calls.open({ operation, method: 'GET', name, headers, triesMax }),
      // The object ends before the range begins.
      [404, 416],
    )
    if (exchange === undefined) return undefined
    const found = extentOf(exchange, operation)
    if (found.total === sizeBytes && found.first === first && found.last === last) return exchange
    exchange.abandon()
    if (found.total === sizeBytes) throw malformed(operation, 'another range than was asked for')
    return undefined
  }

  async sizeOf(name: string): Promise<number | undefined> {
    const operation = 'HeadObject'
    const answer = await unlessAbsent(this.#calls.send({ operation, method: 'HEAD', name }))
    return answer && toSize(operation, answer.headers.get('content-length') ?? '')
  }

  /** What is not there is removed. */
  async remove(name: string): Promise<void> {
    await unlessAbsent(this.#calls.send({ operation: 'DeleteObject', method: 'DELETE', name }))
  }

  async beginUpload(name: string): Promise<string> {
    const operation = 'CreateMultipartUpload'
    const { text } = await this.#calls.send({
      operation,
      method: 'POST',
      name,
      query: [['uploads', '']],
      headers: {
        'content-type': 'application/octet-stream',
        ...(this.#settings.checksum === 'crc32' && { 'x-amz-checksum-algorithm': 'CRC32' }),
        ...this.#encryptionHeaders(),
      },
      isOnceOnly: true,
    })
    return required(operation, readDocument(operation, text, 'InitiateMultipartUploadResult'), 'UploadId')
  }

  /** A text that `completeUpload` wants back as it is: the part's ETag, and in the mode crc32 its checksum. */
  async uploadPart(name: string, uploadId: string, number: number, body: S3Body): Promise<string> {
    const operation = 'UploadPart'
    const checksum = await this.#checksumHeaders(body)
    const { headers } = await this.#calls.send({
      operation,
      method: 'PUT',
      name,
      query: [
        ['partNumber', String(number)],
        ['uploadId', uploadId],
      ],
      headers: checksum,
      body,
    })
    const etag = headers.get('etag') ?? ''
    if (etag === '') throw malformed(operation, 'an answer without an ETag')
    return partTag(etag, checksum['x-amz-checksum-crc32'])
  }

  /** Whether S3 has said that the object is made of these parts; else it is there with this size, and no more is known. */
  completeUpload(name: string, uploadId: string, etags: readonly string[], sizeBytes: number): Promise<boolean> {
    return completeUpload(this.#calls, {
      name,
      uploadId,
      tags: etags,
      sizeBytes,
      triesMax: this.#settings.triesMax,
      sizeOf: (name) => this.sizeOf(name),
    })
  }

  /** An upload that is not there is aborted. */
  async abortUpload(name: string, uploadId: string): Promise<void> {
    const query = [['uploadId', uploadId]] as const
    await unlessAbsent(this.#calls.send({ operation: 'AbortMultipartUpload', method: 'DELETE', name, query }))
  }

  listUploads(prefix: string): AsyncIterable<readonly ListedUpload[]> {
    return listUploads(this.#calls, prefix)
  }

  listObjects(prefix: string): AsyncIterable<readonly ListedObject[]> {
    return listObjects(this.#calls, prefix)
  }

  /** An address that anybody may GET for a while; undefined while there are no credentials, or none that last. */
  presign(name: string, lifetimeSeconds: number): string | undefined {
    const credentials = this.#settings.credentials.current()
    const endsAt = credentials?.expiresAt ?? Number.POSITIVE_INFINITY
    if (credentials === undefined || endsAt - this.#calls.now() < credentialsMinMs) return undefined
    const { url, host, path } = this.#publicAddress.targetOf(name)
    const lifetime = Math.min(lifetimeMaxSeconds, Math.max(1, Math.floor(lifetimeSeconds)))
    return `${url}?${this.#publicSignature.presign(host, path, credentials, this.#calls.now(), lifetime)}`
  }

  /** Resolves when the bucket answers and lets us in. A list, because a HEAD does not say why not. */
  async probe(): Promise<void> {
    const query = [
      ['list-type', '2'],
      ['max-keys', '1'],
    ] as const
    const operation = 'ListObjectsV2'
    const { text } = await this.#calls.send({ operation, method: 'GET', query, triesMax: 2 })
    readDocument(operation, text, 'ListBucketResult')
  }

  /** Lets go of idle connections; what runs ends by itself. */
  async close(): Promise<void> {
    this.#calls.close()
  }

  #encryptionHeaders(): Record<string, string> {
    const { encryption, kmsKeyId } = this.#settings
    if (encryption === 'none') return {}
    const headers: Record<string, string> = { 'x-amz-server-side-encryption': encryption }
    if (encryption === 'aws:kms' && kmsKeyId !== undefined) {
      headers['x-amz-server-side-encryption-aws-kms-key-id'] = kmsKeyId
    }
    return headers
  }

  async #checksumHeaders(body: S3Body): Promise<Record<string, string>> {
    return this.#settings.checksum === 'crc32' ? { 'x-amz-checksum-crc32': await crc32Of(body) } : {}
  }
}

/** A bucket that is not there is trouble; anything else that is not there is just absent. */
async function unlessAbsent<T>(answer: Promise<T>, statuses: readonly number[] = [404]): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    const isAbsent = error instanceof S3Fault && error.status !== undefined && statuses.includes(error.status)
    if (isAbsent && error.code !== 'NoSuchBucket') return undefined
    throw error
  }
}

/** Which bytes of how many an answer brings. */
function extentOf({ status, headers }: S3Exchange, operation: string): ByteRange & { readonly total: number } {
  if (status !== 206) {
    const total = toSize(operation, headers.get('content-length') ?? '')
    return { first: 0, last: total - 1, total }
  }
  const [, first = '', last = '', total = ''] =
    /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get('content-range') ?? '') ?? []
  return { first: toSize(operation, first), last: toSize(operation, last), total: toSize(operation, total) }
}
