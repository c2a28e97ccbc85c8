// The lists of the S3 stub, in pages.
import type { StubBucket } from './s3-stub-bucket.ts'
import { S3Refusal, writeXml } from './s3-stub-xml.ts'

export interface ListRequest {
  readonly name: string
  readonly query: ReadonlyMap<string, string>
  readonly pageSize: number
}

const iso = (timeMs: number) => new Date(timeMs).toISOString()

export function listObjects(bucket: StubBucket, { query, pageSize }: ListRequest): string {
  if (query.get('list-type') !== '2') throw new S3Refusal(501, 'NotImplemented')
  const [prefix, after] = [query.get('prefix') ?? '', readToken(query.get('continuation-token'))]
  const names = [...bucket.objects.keys()].filter((name) => name.startsWith(prefix) && name > after).sort()
  const { entries, last } = pageOf(names, query.get('max-keys'), pageSize)
  return writeXml('ListBucketResult', {
    IsTruncated: last !== undefined,
    // That a token is not the name itself keeps clients from guessing.
    ...(last !== undefined && { NextContinuationToken: Buffer.from(`after:${last}`).toString('base64') }),
    Contents: entries.map((name) => {
      const { etag, bytes, modifiedAt } = bucket.get(name)
      return { Key: name, LastModified: iso(modifiedAt), ETag: `"${etag}"`, Size: bytes.length }
    }),
  })
}

export function listUploads(bucket: StubBucket, { query, pageSize }: ListRequest): string {
  const prefix = query.get('prefix') ?? ''
  const [keyMarker, idMarker] = [query.get('key-marker') ?? '', query.get('upload-id-marker')]
  // By name, and those of one name in the order in which they began; a Map keeps that order.
  const uploads = [...bucket.uploads.values()]
    .filter(({ name }) => name.startsWith(prefix))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.startedAt - b.startedAt))
  const seen = uploads.findIndex(({ name, id }) => name === keyMarker && id === idMarker)
  const isBehind = ({ name }: { readonly name: string }, at: number) =>
    name > keyMarker || (seen !== -1 && name === keyMarker && at > seen)
  const { entries, last } = pageOf(uploads.filter(isBehind), query.get('max-uploads'), pageSize)
  return writeXml('ListMultipartUploadsResult', {
    IsTruncated: last !== undefined,
    ...(last !== undefined && { NextKeyMarker: last.name, NextUploadIdMarker: last.id }),
    Upload: entries.map(({ id, name, startedAt }) => ({ Key: name, UploadId: id, Initiated: iso(startedAt) })),
  })
}

export function listParts(bucket: StubBucket, { query, name }: ListRequest): string {
  const upload = bucket.getUpload(name, query.get('uploadId') ?? '')
  const parts = [...upload.parts].sort(([a], [b]) => a - b)
  return writeXml('ListPartsResult', {
    IsTruncated: false,
    Part: parts.map(([number, { etag, bytes }]) => ({ PartNumber: number, ETag: `"${etag}"`, Size: bytes.length })),
  })
}

/** The first page. `last` is its last entry if more follow. */
function pageOf<T>(entries: readonly T[], asked = '1000', pageSize: number) {
  if (!/^\d+$/.test(asked)) throw new S3Refusal(400, 'InvalidArgument')
  const page = entries.slice(0, Math.min(Number(asked), pageSize, 1_000))
  return { entries: page, last: entries.length > page.length ? page.at(-1) : undefined }
}

function readToken(token: string | undefined): string {
  const text = Buffer.from(token ?? btoa('after:'), 'base64').toString()
  if (!text.startsWith('after:')) throw new S3Refusal(400, 'InvalidArgument')
  return text.slice('after:'.length)
}
