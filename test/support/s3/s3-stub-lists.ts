// The lists of the S3 stub, in pages.
import { encodeStrictly } from './s3-signature.ts'
import { pageOf, type StubBucket } from './s3-stub-bucket.ts'
import { S3Refusal, writeXml, type XmlElements } from './s3-stub-xml.ts'

export interface ListRequest {
  readonly bucketName: string
  readonly name: string
  readonly query: ReadonlyMap<string, string>
  readonly pageSize: number
}

const countMax = 1_000

export function listObjects(bucket: StubBucket, request: ListRequest): string {
  const { query } = request
  if (query.get('list-type') !== '2')
    throw new S3Refusal(501, 'NotImplemented', 'Only version 2 of the list of objects is there')
  const prefix = query.get('prefix') ?? ''
  const token = query.get('continuation-token')
  const after = token === undefined ? (query.get('start-after') ?? '') : readToken(token)
  const names = [...bucket.objects.keys()].filter((name) => name.startsWith(prefix)).sort()
  const page = pageOf(names, (name) => name > after, sizeOfPage(request, 'max-keys'))
  return writeXml('ListBucketResult', {
    Name: request.bucketName,
    Prefix: show(prefix, query),
    ...encodingOf(query),
    KeyCount: page.entries.length,
    MaxKeys: Number(query.get('max-keys') ?? countMax),
    IsTruncated: page.last !== undefined,
    ...(token === undefined ? {} : { ContinuationToken: token }),
    ...(page.last === undefined ? {} : { NextContinuationToken: writeToken(page.last) }),
    Contents: page.entries.map((name) => {
      const { etag, bytes, modifiedAt } = bucket.get(name)
      return {
        Key: show(name, query),
        LastModified: new Date(modifiedAt).toISOString(),
        ETag: `"${etag}"`,
        Size: bytes.length,
        StorageClass: 'STANDARD',
      }
    }),
  })
}

export function listUploads(bucket: StubBucket, request: ListRequest): string {
  const { query } = request
  const prefix = query.get('prefix') ?? ''
  const keyMarker = query.get('key-marker') ?? ''
  const idMarker = query.get('upload-id-marker') ?? ''
  // By name, and those of one name by the order in which they began; a Map keeps that order.
  const uploads = [...bucket.uploads.values()]
    .filter(({ name }) => name.startsWith(prefix))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.startedAt - b.startedAt))
  const seen = uploads.findIndex(({ name, id }) => name === keyMarker && id === idMarker)
  const isBehind = (entry: (typeof uploads)[number]) =>
    entry.name > keyMarker || (seen !== -1 && entry.name === keyMarker && uploads.indexOf(entry) > seen)
  const page = pageOf(uploads, isBehind, sizeOfPage(request, 'max-uploads'))
  return writeXml('ListMultipartUploadsResult', {
    Bucket: request.bucketName,
    KeyMarker: show(keyMarker, query),
    UploadIdMarker: idMarker,
    ...(page.last === undefined
      ? {}
      : { NextKeyMarker: show(page.last.name, query), NextUploadIdMarker: page.last.id }),
    Prefix: show(prefix, query),
    ...encodingOf(query),
    MaxUploads: Number(query.get('max-uploads') ?? countMax),
    IsTruncated: page.last !== undefined,
    Upload: page.entries.map(({ id, name, startedAt }) => ({
      Key: show(name, query),
      UploadId: id,
      StorageClass: 'STANDARD',
      Initiated: new Date(startedAt).toISOString(),
    })),
  })
}

export function listParts(bucket: StubBucket, request: ListRequest): string {
  const { query, name } = request
  const upload = bucket.getUpload(name, query.get('uploadId') ?? '')
  const marker = Number(query.get('part-number-marker') ?? 0)
  const parts = [...upload.parts].sort(([a], [b]) => a - b)
  const page = pageOf(parts, ([number]) => number > marker, sizeOfPage(request, 'max-parts'))
  return writeXml('ListPartsResult', {
    Bucket: request.bucketName,
    Key: name,
    UploadId: upload.id,
    PartNumberMarker: marker,
    ...(page.last === undefined ? {} : { NextPartNumberMarker: page.last[0] }),
    MaxParts: Number(query.get('max-parts') ?? countMax),
    IsTruncated: page.last !== undefined,
    Part: page.entries.map(([number, { etag, bytes, modifiedAt }]) => ({
      PartNumber: number,
      LastModified: new Date(modifiedAt).toISOString(),
      ETag: `"${etag}"`,
      Size: bytes.length,
    })),
  })
}

function sizeOfPage({ query, pageSize }: ListRequest, parameter: string): number {
  const asked = query.get(parameter) ?? String(countMax)
  if (!/^\d+$/.test(asked)) throw new S3Refusal(400, 'InvalidArgument', `${parameter} is no number`)
  return Math.min(Number(asked), pageSize, countMax)
}

function encodingOf(query: ReadonlyMap<string, string>): XmlElements {
  const encoding = query.get('encoding-type')
  if (encoding === undefined) return {}
  if (encoding !== 'url') throw new S3Refusal(400, 'InvalidArgument', 'Invalid Encoding Method specified in Request')
  return { EncodingType: encoding }
}

function show(name: string, query: ReadonlyMap<string, string>): string {
  return query.has('encoding-type') ? name.split('/').map(encodeStrictly).join('/') : name
}

/** A token means something to the server alone; that it is not the name itself keeps clients from guessing. */
function writeToken(name: string): string {
  return Buffer.from(`after:${name}`).toString('base64')
}

function readToken(token: string): string {
  const text = Buffer.from(token, 'base64').toString()
  if (!text.startsWith('after:'))
    throw new S3Refusal(400, 'InvalidArgument', 'The continuation token provided is incorrect')
  return text.slice('after:'.length)
}
