import { errorCodeIn, malformed, parseTime, S3Error } from './s3-response.ts'
import type { QueryParameters } from './signature-v4.ts'

const entity = /&(?:(lt|gt|amp|quot|apos)|#x([0-9a-f]{1,5}|10[0-9a-f]{4})|#(\d{1,6}));/gi
const namedEntities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

/** Undefined where the text has an entity that XML does not define. */
function decodeEntities(text: string): string | undefined {
  if (!text.includes('&')) return text
  if (text.replace(entity, '').includes('&')) return undefined
  return text.replace(entity, (_, name?: string, hex?: string, decimal?: string) =>
    name === undefined
      ? String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16))
      : (namedEntities[name.toLowerCase()] ?? ''),
  )
}

export function escapeXml(text: string): string {
  return text.replace(/[<>&"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}

/**
 * Checks that the text is a complete document with this root element. The documents of S3 need no general XML parser: their
 * fields are elements without attributes, and `<` is always escaped in their text. docs/decisions/0020-s3.md compares
 * this with a parser from a package.
 */
export function checkDocument(operation: string, text: string, root: string): void {
  const [start, name] = /^\s*(?:<\?xml[^>]*>\s*)?<(\w+)(?=[\s>/])/.exec(text) ?? []
  if (start === undefined) throw malformed(operation, 'the response is not XML')
  if (name !== root) throw malformed(operation, 'the response is another document than expected')
  const end = text.trimEnd()
  const isEmpty = end.endsWith('/>') && end.indexOf('>', start.length) === end.length - 1
  if (!isEmpty && !end.endsWith(`</${root}>`)) throw malformed(operation, 'the response is not complete')
}

/** The text of the first element of that name. */
export function fieldOf(text: string, name: string): string | undefined {
  const start = text.indexOf(`<${name}>`)
  const from = start + name.length + 2
  const end = text.indexOf('<', from)
  return start !== -1 && text.startsWith(`</${name}>`, end) ? decodeEntities(text.slice(from, end)) : undefined
}

function requiredField(operation: string, text: string, name: string): string {
  const field = fieldOf(text, name)
  if (field === undefined || field === '') throw malformed(operation, `the response has no ${name}`)
  return field
}

export interface ListedUpload {
  readonly name: string
  readonly uploadId: string
  /** By the clock of the server. */
  readonly ageMs: number
}

export type ListedObject = Omit<ListedUpload, 'uploadId'>

/** One kind of list: the request for it, and how a page of it is read. */
export interface ListKind<T> {
  readonly operation: string
  readonly query: QueryParameters
  readonly root: string
  /** The element of an entry. */
  readonly element: string
  /** `nowMs` is the time of the server. */
  parseEntry(entry: string, nowMs: number): T
  /** The parameters that lead to the next page. */
  parseNext(page: string): QueryParameters
}

interface ListPage<T> {
  readonly entries: T[]
  /** Undefined: this is the last page. */
  readonly next: QueryParameters | undefined
}

export function parsePage<T>(kind: ListKind<T>, text: string, nowMs: number): ListPage<T> {
  checkDocument(kind.operation, text, kind.root)
  const [, ...entries] = text.split(`<${kind.element}>`)
  return {
    entries: entries.map((entry) => kind.parseEntry(entry, nowMs)),
    next: fieldOf(text, 'IsTruncated') === 'true' ? kind.parseNext(text) : undefined,
  }
}

const listUploads = 'ListMultipartUploads'
const listObjects = 'ListObjectsV2'
const pageSizeMax = '1000'

export const uploadList: ListKind<ListedUpload> = {
  operation: listUploads,
  query: [
    ['uploads', ''],
    ['max-uploads', pageSizeMax],
  ],
  root: 'ListMultipartUploadsResult',
  element: 'Upload',
  parseEntry: (upload, nowMs) => ({
    name: requiredField(listUploads, upload, 'Key'),
    uploadId: requiredField(listUploads, upload, 'UploadId'),
    ageMs: ageOf(listUploads, upload, 'Initiated', nowMs),
  }),
  parseNext: (page) => [
    ['key-marker', requiredField(listUploads, page, 'NextKeyMarker')],
    ['upload-id-marker', fieldOf(page, 'NextUploadIdMarker') ?? ''],
  ],
}

export const objectList: ListKind<ListedObject> = {
  operation: listObjects,
  query: [
    ['list-type', '2'],
    ['max-keys', pageSizeMax],
  ],
  root: 'ListBucketResult',
  element: 'Contents',
  parseEntry: (object, nowMs) => ({
    name: requiredField(listObjects, object, 'Key'),
    ageMs: ageOf(listObjects, object, 'LastModified', nowMs),
  }),
  parseNext: (page) => [['continuation-token', requiredField(listObjects, page, 'NextContinuationToken')]],
}

function ageOf(operation: string, entry: string, name: string, nowMs: number): number {
  const time = parseTime(requiredField(operation, entry, name))
  if (time === undefined) throw malformed(operation, `the response has no valid time in ${name}`)
  return Math.max(0, nowMs - time)
}

export function parseUploadId(operation: string, text: string): string {
  checkDocument(operation, text, 'InitiateMultipartUploadResult')
  return requiredField(operation, text, 'UploadId')
}

export const completeOperation = 'CompleteMultipartUpload'

/** The tag of a stored part: its ETag, and its CRC-32 where S3 requires it again when the upload is completed. */
export function formatPartTag(etag: string, crc32: string | undefined): string {
  return crc32 === undefined ? etag : `${etag} crc32=${crc32}`
}

export function formatCompletion(tags: readonly string[]): string {
  const elements = tags.map((tag, index) => {
    const [etag = '', crc32] = tag.split(' crc32=')
    const checksum = crc32 === undefined ? '' : `<ChecksumCRC32>${escapeXml(crc32)}</ChecksumCRC32>`
    return `<Part><PartNumber>${index + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag>${checksum}</Part>`
  })
  const namespace = 'http://s3.amazonaws.com/doc/2006-03-01/'
  return `<${completeOperation} xmlns="${namespace}">${elements.join('')}</${completeOperation}>`
}

/** CompleteMultipartUpload may send an error with status 200. */
export function checkCompletion(text: string): void {
  const code = errorCodeIn(text)
  if (code !== undefined) throw new S3Error(completeOperation, { status: 200, code })
  checkDocument(completeOperation, text, `${completeOperation}Result`)
}
