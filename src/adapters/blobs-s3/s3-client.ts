import type { ByteRange } from '../../ports/blob-store.ts'
import { Download, type DownloadSlot, DownloadSlots, parseExtent, type ReaderPace } from './downloads.ts'
import { RequestSender, type S3Time, type SenderSettings, systemTime } from './request-sender.ts'
import {
  checkCompletion,
  completeOperation,
  formatCompletion,
  formatPartTag,
  type ListedObject,
  type ListedUpload,
  type ListKind,
  objectList,
  parsePage,
  parseUploadId,
  uploadList,
} from './s3-documents.ts'
import { type Checksum, type S3Body, toBody } from './s3-request.ts'
import { malformed, parseSize, parseTime, S3Error, type S3Response } from './s3-response.ts'
import { type QueryParameters, S3Address, SignatureV4 } from './signature-v4.ts'

export interface S3ClientSettings extends SenderSettings {
  readonly checksum: Checksum
  /** The endpoint in presigned URLs, where clients reach the bucket by another one. */
  readonly publicEndpoint: string | undefined
  /** Requested for each object; `none` leaves it to the bucket. */
  readonly encryption: 'none' | 'AES256' | 'aws:kms'
  readonly kmsKeyId: string | undefined
  /** The rate that readers must reach while others wait for a download; without it there is no minimum. */
  readonly readerPace?: ReaderPace
}

/** Downloads last as long as their readers like, so they get only this share of the requests. */
const downloadShare = 0.75

const urlLifetimeMaxSeconds = 7 * 24 * 3600
/** A presigned URL expires with its credentials. They must last long enough for the client to use the URL. */
const credentialsMinMs = 60_000

/** The time that S3 gets to complete an upload, for each part and for its bytes. */
const completionMsPerPart = 10
const completionBytesPerMs = 1024 * 1024

/**
 * The operations on one bucket. They reject with `S3Error`, and with `NoSlot` if too many requests wait already.
 * `RequestSender` repeats those that can be repeated.
 */
export class S3Client {
  readonly #settings: S3ClientSettings
  readonly #sender: RequestSender
  readonly #downloads: DownloadSlots
  readonly #publicAddress: S3Address
  readonly #publicSignature: SignatureV4

  constructor(settings: S3ClientSettings, time: S3Time = systemTime) {
    this.#settings = settings
    this.#sender = new RequestSender(settings, time)
    this.#downloads = new DownloadSlots({
      slotsMax: Math.max(1, Math.floor(settings.requestsMax * downloadShare)),
      queueMax: settings.queueMax,
      waitMaxMs: settings.attemptTimeoutMs,
      pace: settings.readerPace,
    })
    const endpoint = settings.publicEndpoint ?? settings.endpoint
    this.#publicAddress = new S3Address({ ...settings, endpoint })
    this.#publicSignature = new SignatureV4(settings.region)
  }

  async put(name: string, body: S3Body): Promise<void> {
    const headers = { ...this.#encryptionHeaders(), ...this.#checksumHeaders(body) }
    await this.#sender.send({ operation: 'PutObject', method: 'PUT', name, headers, body })
  }

  /**
   * The bytes of an object for a client, which may read them slowly; it needs a download slot. Undefined: there is no such
   * object, or it does not have `sizeBytes` bytes.
   */
  async open(name: string, sizeBytes: number, range?: ByteRange): Promise<ReadableStream<Uint8Array> | undefined> {
    const slot = await this.#downloads.take()
    return this.#download(name, sizeBytes, range, slot)
  }

  /**
   * The bytes of an object for this process, which reads them as fast as they arrive, so they need no download slot. They
   * must be read to the end or cancelled.
   */
  read(name: string, sizeBytes: number, range?: ByteRange): Promise<ReadableStream<Uint8Array> | undefined> {
    return this.#download(name, sizeBytes, range, undefined)
  }

  async #download(
    name: string,
    sizeBytes: number,
    range: ByteRange | undefined,
    slot: DownloadSlot | undefined,
  ): Promise<ReadableStream<Uint8Array> | undefined> {
    const wanted = range ?? { first: 0, last: sizeBytes - 1 }
    let releaseRequest: (() => void) | undefined
    const release = (): void => {
      releaseRequest?.()
      slot?.release()
    }
    try {
      releaseRequest = await this.#sender.takeSlot()
      const response = await this.#get(name, sizeBytes, wanted, this.#settings.triesMax)
      if (response === undefined || wanted.last < wanted.first) {
        response?.abort()
        release()
        return response && new Blob([]).stream()
      }
      const download = new Download(response, wanted, {
        reopen: (rest) => this.#get(name, sizeBytes, rest, 1),
        pause: (tries, error) => this.#sender.pause(tries, error),
        waitMs: this.#settings.attemptTimeoutMs,
        triesMax: this.#settings.triesMax,
        slot,
        release,
      })
      return download.stream()
    } catch (error) {
      release()
      throw error
    }
  }

  async #get(
    name: string,
    sizeBytes: number,
    { first, last }: ByteRange,
    triesMax: number,
  ): Promise<S3Response | undefined> {
    const operation = 'GetObject'
    const isWhole = first === 0 && last === sizeBytes - 1
    const headers: Record<string, string> = isWhole ? {} : { range: `bytes=${first}-${last}` }
    const opening = this.#sender.open({ operation, method: 'GET', name, headers, triesMax })
    // 416: the object ends before the range begins.
    const response = await unlessAbsent(opening, [404, 416])
    if (response === undefined) return undefined
    const found = parseExtent(response, operation)
    if (found.total === sizeBytes && found.first === first && found.last === last) return response
    response.abort()
    if (found.total === sizeBytes) throw malformed(operation, 'the response has another range than requested')
    return undefined
  }

  async findSize(name: string): Promise<number | undefined> {
    const operation = 'HeadObject'
    const response = await unlessAbsent(this.#sender.send({ operation, method: 'HEAD', name }))
    return response && parseSize(operation, response.headers.get('content-length'))
  }

  /** Succeeds also if there is no such object. */
  async remove(name: string): Promise<void> {
    await unlessAbsent(this.#sender.send({ operation: 'DeleteObject', method: 'DELETE', name }))
  }

  async createUpload(name: string): Promise<string> {
    const operation = 'CreateMultipartUpload'
    const { text } = await this.#sender.send({
      operation,
      method: 'POST',
      name,
      query: [['uploads', '']],
      headers: {
        'content-type': 'application/octet-stream',
        ...(this.#settings.checksum === 'crc32' && { 'x-amz-checksum-algorithm': 'CRC32' }),
        ...this.#encryptionHeaders(),
      },
      // A second upload would stay in the bucket.
      isOnceOnly: true,
    })
    return parseUploadId(operation, text)
  }

  /** Gives the tag of the part, which `completeUpload` needs. */
  async uploadPart(name: string, uploadId: string, number: number, body: S3Body): Promise<string> {
    const operation = 'UploadPart'
    const headers = this.#checksumHeaders(body)
    const query: QueryParameters = [
      ['partNumber', String(number)],
      ['uploadId', uploadId],
    ]
    const response = await this.#sender.send({ operation, method: 'PUT', name, query, headers, body })
    const etag = response.headers.get('etag') ?? ''
    if (etag === '') throw malformed(operation, 'the response has no ETag')
    return formatPartTag(etag, headers['x-amz-checksum-crc32'])
  }

  /** One attempt. After an error, the object may exist all the same: `MultipartUpload` decides what to do. */
  async completeUpload(name: string, uploadId: string, tags: readonly string[], sizeBytes: number): Promise<void> {
    const { text } = await this.#sender.send({
      operation: completeOperation,
      method: 'POST',
      name,
      query: [['uploadId', uploadId]],
      headers: { 'content-type': 'application/xml' },
      body: toBody(Buffer.from(formatCompletion(tags))),
      isOnceOnly: true,
      triesMax: 1,
      extraTimeMs: tags.length * completionMsPerPart + Math.ceil(sizeBytes / completionBytesPerMs),
    })
    checkCompletion(text)
  }

  /** Waits before an attempt that the caller makes. False if there must be no further attempt. */
  async pause(tries: number, error: S3Error): Promise<boolean> {
    return tries < this.#settings.triesMax && (await this.#sender.pause(tries, error))
  }

  /** Succeeds also if there is no such upload. */
  async abortUpload(name: string, uploadId: string): Promise<void> {
    const query: QueryParameters = [['uploadId', uploadId]]
    await unlessAbsent(this.#sender.send({ operation: 'AbortMultipartUpload', method: 'DELETE', name, query }))
  }

  listUploads(prefix: string): AsyncIterable<readonly ListedUpload[]> {
    return this.#list(uploadList, prefix)
  }

  listObjects(prefix: string): AsyncIterable<readonly ListedObject[]> {
    return this.#list(objectList, prefix)
  }

  async *#list<T>(kind: ListKind<T>, prefix: string): AsyncGenerator<readonly T[]> {
    const { operation } = kind
    let from: QueryParameters = []
    for (;;) {
      const query: QueryParameters = [...kind.query, ['prefix', prefix], ...from]
      const { headers, text } = await this.#sender.send({ operation, method: 'GET', query })
      // The server has dated the entries, so their age is counted by its clock.
      const { entries, next } = parsePage(kind, text, parseTime(headers.get('date')) ?? this.#sender.now())
      yield entries
      if (next === undefined) return
      // A server that sends the same page again and again must not keep the caller forever.
      if (Bun.deepEquals(from, next)) throw malformed(operation, 'the list does not advance')
      from = next
    }
  }

  /** A URL with which anybody can GET the object; undefined while there are no credentials that last long enough. */
  presign(name: string, lifetimeSeconds: number): string | undefined {
    const credentials = this.#settings.credentials.current()
    const endsAt = credentials?.expiresAt ?? Number.POSITIVE_INFINITY
    if (credentials === undefined || endsAt - this.#sender.now() < credentialsMinMs) return undefined
    const { url, host, path } = this.#publicAddress.urlOf(name)
    const lifetime = Math.min(urlLifetimeMaxSeconds, Math.max(1, Math.floor(lifetimeSeconds)))
    return `${url}?${this.#publicSignature.presign(host, path, credentials, this.#sender.now(), lifetime)}`
  }

  /** Resolves if the bucket can be listed. The response to a HEAD would not explain an error. */
  async probe(): Promise<void> {
    const query: QueryParameters = [
      ['list-type', '2'],
      ['max-keys', '1'],
    ]
    const { operation } = objectList
    const { text } = await this.#sender.send({ operation, method: 'GET', query, triesMax: 2 })
    parsePage(objectList, text, this.#sender.now())
  }

  /** Closes idle connections. Running requests end by themselves. */
  async close(): Promise<void> {
    this.#sender.close()
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

  #checksumHeaders({ crc32 }: S3Body): Record<string, string> {
    return this.#settings.checksum === 'crc32' && crc32 !== undefined ? { 'x-amz-checksum-crc32': crc32 } : {}
  }
}

/** A missing object is absent, which is no error. A missing bucket is an error. */
async function unlessAbsent<T>(response: Promise<T>, statuses: readonly number[] = [404]): Promise<T | undefined> {
  try {
    return await response
  } catch (error) {
    const isAbsent = error instanceof S3Error && error.status !== undefined && statuses.includes(error.status)
    if (isAbsent && error.code !== 'NoSuchBucket') return undefined
    throw error
  }
}
