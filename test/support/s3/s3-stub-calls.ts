// The calls of the S3 stub: what is left to do once a request is signed, whole, and understood.
import { type S3Operation, type S3Target, s3Parameters } from './s3-operation.ts'
import { type Encryption, md5, type PartChecksums, type StoredObject, type StubBucket } from './s3-stub-bucket.ts'
import { listObjects, listParts, listUploads } from './s3-stub-lists.ts'
import { parsePartsToJoin, S3Refusal, writeXml } from './s3-stub-xml.ts'

export interface Call extends S3Target {
  readonly headers: Headers
  readonly body: Uint8Array
  readonly nowMs: number
  readonly pageSize: number
  /** Where the bucket takes nothing that is not encrypted. */
  readonly mustEncrypt: boolean
}

type Handler = (bucket: StubBucket, call: Call) => Response

const sse = 'x-amz-server-side-encryption'
const sseKey = `${sse}-aws-kms-key-id`

const everywhere = ['x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token', 'x-amz-user-agent']
const ofBodies = ['x-amz-checksum-crc32', 'x-amz-sdk-checksum-algorithm']

/** Headers that a call knows, of those that begin with `x-amz-`. */
const headerNames: Readonly<Partial<Record<S3Operation, readonly string[]>>> = {
  PutObject: [...ofBodies, sse, sseKey],
  CreateMultipartUpload: [sse, sseKey, 'x-amz-checksum-algorithm', 'x-amz-checksum-type'],
  UploadPart: ofBodies,
  CompleteMultipartUpload: ['x-amz-checksum-type'],
  GetObject: ['x-amz-checksum-mode'],
  HeadObject: ['x-amz-checksum-mode'],
}

export function answerCall(bucket: StubBucket, operation: S3Operation, call: Call): Response {
  const knownHeaders = [...everywhere, ...(headerNames[operation] ?? [])]
  const headers = [...call.headers.keys()].filter((name) => name.startsWith('x-amz-') && !knownHeaders.includes(name))
  const known: readonly string[] = s3Parameters[operation]
  if (headers.includes(sse)) throw new S3Refusal(400, 'InvalidArgument', `${sse} is not supported for this operation`)
  const names = [...call.query.keys()].filter((name) => !name.startsWith('X-Amz-') && name !== 'x-id')
  const strange = [...headers, ...names.filter((name) => !known.includes(name))]
  if (strange.length > 0) throw new S3Refusal(501, 'NotImplemented', `not implemented: ${strange.join(', ')}`)
  return handlers[operation](bucket, call)
}

const handlers: Readonly<Record<S3Operation, Handler>> = {
  PutObject(bucket, { name, headers, body, nowMs, mustEncrypt }) {
    const condition = headers.get('if-none-match')
    if (condition !== null && condition !== '*') throw new S3Refusal(501, 'NotImplemented')
    if (condition === '*' && bucket.objects.has(name)) throw new S3Refusal(412, 'PreconditionFailed')
    const encryption = readEncryption(headers, mustEncrypt)
    const contentType = readContentType(headers)
    const { etag } = bucket.put(name, { bytes: body, modifiedAt: nowMs, contentType, encryption })
    return empty(200, { etag: `"${etag}"`, ...showEncryption(encryption) })
  },
  GetObject: (bucket, call) => sendObject(bucket.get(call.name), call),
  HeadObject(bucket, { name }) {
    const object = bucket.get(name)
    return empty(200, { ...objectHeaders(object), 'content-length': String(object.bytes.length) })
  },
  DeleteObject(bucket, { name }) {
    bucket.objects.delete(name)
    return empty(204)
  },
  CreateMultipartUpload(bucket, { bucket: Bucket, name, headers, nowMs, mustEncrypt }) {
    const encryption = readEncryption(headers, mustEncrypt)
    const checksums = readPartChecksums(headers)
    const upload = { name, startedAt: nowMs, encryption, checksums, contentType: readContentType(headers) }
    const { id } = bucket.begin(upload)
    return xml(
      writeXml('InitiateMultipartUploadResult', { Bucket, Key: name, UploadId: id }),
      showEncryption(encryption),
    )
  },
  UploadPart(bucket, { name, query, headers, body, nowMs }) {
    const upload = bucket.getUpload(name, query.get('uploadId') ?? '')
    const crc32 = headers.get('x-amz-checksum-crc32') ?? undefined
    const { etag } = bucket.putPart(upload, query.get('partNumber') ?? '', body, crc32, nowMs)
    return empty(200, { etag: `"${etag}"`, ...showEncryption(upload.encryption) })
  },
  CompleteMultipartUpload(bucket, { bucket: Bucket, name, query, body, nowMs }) {
    const upload = bucket.getUpload(name, query.get('uploadId') ?? '')
    const object = bucket.complete(upload, parsePartsToJoin(new TextDecoder().decode(body)), nowMs)
    const answer = { Location: `/${Bucket}/${name}`, Bucket, Key: name, ETag: `"${object.etag}"` }
    return xml(writeXml('CompleteMultipartUploadResult', answer), showEncryption(object.encryption))
  },
  AbortMultipartUpload(bucket, { name, query }) {
    bucket.uploads.delete(bucket.getUpload(name, query.get('uploadId') ?? '').id)
    return empty(204)
  },
  ListMultipartUploads: (bucket, call) => xml(listUploads(bucket, call)),
  ListParts: (bucket, call) => xml(listParts(bucket, call)),
  ListObjects: (bucket, call) => xml(listObjects(bucket, call)),
  HeadBucket: () => empty(200),
  CreateBucket() {
    throw new S3Refusal(409, 'BucketAlreadyOwnedByYou')
  },
}

function sendObject(object: StoredObject, { headers, query }: Call): Response {
  const shown: Record<string, string> = objectHeaders(object)
  for (const [name, value] of query) if (name.startsWith('response-')) shown[name.slice('response-'.length)] = value
  const range = readRange(headers.get('range'), object.bytes.length)
  if (range === undefined) return new Response(new Uint8Array(object.bytes), { headers: shown })
  shown['content-range'] = `bytes ${range.first}-${range.last}/${object.bytes.length}`
  return new Response(new Uint8Array(object.bytes.subarray(range.first, range.last + 1)), {
    status: 206,
    headers: shown,
  })
}

/** Undefined where there is no range, or one that S3 overlooks: several at once, or nonsense. */
function readRange(header: string | null, size: number): { first: number; last: number } | undefined {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? []
  if (from === undefined || to === undefined || from + to === '') return undefined
  if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined
  const first = from === '' ? Math.max(0, size - Number(to)) : Number(from)
  const last = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (first >= size || (from === '' && Number(to) === 0))
    throw new S3Refusal(416, 'InvalidRange', undefined, {
      'content-range': `bytes */${size}`,
    })
  return { first, last }
}

/** Whether the bytes are those that the headers speak of. */
export function checkBody(headers: Headers, body: Uint8Array): void {
  const given = headers.get('x-amz-content-sha256') ?? 'UNSIGNED-PAYLOAD'
  if (given.startsWith('STREAMING-') || headers.get('content-encoding')?.includes('aws-chunked') === true)
    throw new S3Refusal(501, 'NotImplemented')
  if (given !== 'UNSIGNED-PAYLOAD' && given !== new Bun.CryptoHasher('sha256').update(body).digest('hex'))
    throw new S3Refusal(400, 'XAmzContentSHA256Mismatch')
  const sum = headers.get('content-md5')
  if (sum !== null && sum !== md5(body).toString('base64')) throw new S3Refusal(400, 'BadDigest', 'Content-MD5')
  const crc32 = headers.get('x-amz-checksum-crc32')
  if (crc32 !== null && crc32 !== crc32Of(body)) throw new S3Refusal(400, 'BadDigest', 'CRC32')
}

/** As S3 writes it: four bytes, the highest first, in base64. */
export function crc32Of(bytes: Uint8Array): string {
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(Bun.hash.crc32(bytes))
  return sum.toString('base64')
}

function readPartChecksums(headers: Headers): PartChecksums | undefined {
  const algorithm = headers.get('x-amz-checksum-algorithm')
  const type = headers.get('x-amz-checksum-type') ?? 'COMPOSITE'
  if (algorithm === null) return undefined
  if (algorithm !== 'CRC32' || (type !== 'COMPOSITE' && type !== 'FULL_OBJECT'))
    throw new S3Refusal(501, 'NotImplemented')
  return { algorithm, type }
}

function readEncryption(headers: Headers, mustEncrypt: boolean): Encryption | undefined {
  const algorithm = headers.get(sse)
  const kmsKeyId = headers.get(sseKey) ?? undefined
  if (algorithm === null && mustEncrypt) throw new S3Refusal(403, 'AccessDenied')
  if (algorithm === null && kmsKeyId === undefined) return undefined
  if (algorithm === null || !['AES256', 'aws:kms'].includes(algorithm) || (kmsKeyId && algorithm !== 'aws:kms'))
    throw new S3Refusal(400, 'InvalidArgument')
  return { algorithm, kmsKeyId }
}

function readContentType(headers: Headers): string {
  return headers.get('content-type') ?? 'binary/octet-stream'
}

function showEncryption(encryption: Encryption | undefined): Record<string, string> {
  if (encryption === undefined) return {}
  const { algorithm, kmsKeyId } = encryption
  return { [sse]: algorithm, ...(kmsKeyId === undefined ? {} : { [sseKey]: kmsKeyId }) }
}

function objectHeaders({ etag, modifiedAt, contentType, encryption }: StoredObject): Record<string, string> {
  return {
    etag: `"${etag}"`,
    'last-modified': new Date(modifiedAt).toUTCString(),
    'accept-ranges': 'bytes',
    'content-type': contentType,
    ...showEncryption(encryption),
  }
}

function empty(status: number, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(null, { status, headers })
}

function xml(text: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(text, { headers: { 'content-type': 'application/xml', ...headers } })
}
