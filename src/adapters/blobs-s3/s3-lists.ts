import type { S3Answer, S3Call, S3Calls } from './s3-calls.ts'
import { S3Fault, timeOf } from './s3-fault.ts'
import { childrenOf, parseXml, textOf, type XmlElement } from './s3-xml.ts'

export interface ListedUpload {
  readonly name: string
  readonly uploadId: string
  readonly ageMs: number
}

export interface ListedObject {
  readonly name: string
  readonly ageMs: number
  readonly sizeBytes: number
}

type Query = readonly (readonly [name: string, value: string])[]

const pageMax = '1000'

/** Page by page. Ages are by the server's clock, which dated them. */
export async function* listUploads(calls: S3Calls, prefix: string): AsyncGenerator<readonly ListedUpload[]> {
  const operation = 'ListMultipartUploads'
  let from: Query = []
  for (;;) {
    const query: Query = [['uploads', ''], ['prefix', prefix], ['max-uploads', pageMax], ...from]
    const { answer, page } = await readPage(calls, { operation, method: 'GET', query }, 'ListMultipartUploadsResult')
    yield childrenOf(page, 'Upload').map((upload) => ({
      name: required(operation, upload, 'Key'),
      uploadId: required(operation, upload, 'UploadId'),
      ageMs: ageOf(operation, calls, answer, upload, 'Initiated'),
    }))
    if (textOf(page, 'IsTruncated') !== 'true') return
    const next: Query = [
      ['key-marker', required(operation, page, 'NextKeyMarker')],
      ['upload-id-marker', textOf(page, 'NextUploadIdMarker') ?? ''],
    ]
    from = advance(operation, from, next)
  }
}

export async function* listObjects(calls: S3Calls, prefix: string): AsyncGenerator<readonly ListedObject[]> {
  const operation = 'ListObjectsV2'
  let from: Query = []
  for (;;) {
    const query: Query = [['list-type', '2'], ['prefix', prefix], ['max-keys', pageMax], ...from]
    const { answer, page } = await readPage(calls, { operation, method: 'GET', query }, 'ListBucketResult')
    yield childrenOf(page, 'Contents').map((object) => ({
      name: required(operation, object, 'Key'),
      ageMs: ageOf(operation, calls, answer, object, 'LastModified'),
      sizeBytes: toSize(operation, required(operation, object, 'Size')),
    }))
    if (textOf(page, 'IsTruncated') !== 'true') return
    from = advance(operation, from, [['continuation-token', required(operation, page, 'NextContinuationToken')]])
  }
}

async function readPage(
  calls: S3Calls,
  call: S3Call,
  root: string,
): Promise<{ readonly answer: S3Answer; readonly page: XmlElement }> {
  const answer = await calls.send(call)
  return { answer, page: readDocument(call.operation, answer.text, root) }
}

/** The document that was asked for, or a fault. */
export function readDocument(operation: string, text: string, root: string): XmlElement {
  let document: XmlElement
  try {
    document = parseXml(text)
  } catch (cause) {
    throw malformed(operation, 'an answer that is not XML', cause)
  }
  if (document.name !== root) throw malformed(operation, 'another answer than was asked for')
  return document
}

export function required(operation: string, element: XmlElement, name: string): string {
  const text = textOf(element, name)
  if (text === undefined || text === '') throw malformed(operation, `an answer without ${name}`)
  return text
}

export function toSize(operation: string, text: string): number {
  const size = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isNaN(size)) throw malformed(operation, 'a size that is none')
  return size
}

export function malformed(operation: string, words: string, cause?: unknown): S3Fault {
  return new S3Fault(operation, { code: 'malformed', words, cause })
}

function ageOf(operation: string, calls: S3Calls, { headers }: S3Answer, element: XmlElement, name: string): number {
  const time = timeOf(required(operation, element, name))
  if (time === undefined) throw malformed(operation, `an answer without a time in ${name}`)
  return Math.max(0, (timeOf(headers.get('date')) ?? calls.now()) - time)
}

/** A server that gives the same page again and again would keep us for ever. */
function advance(operation: string, from: Query, next: Query): Query {
  if (JSON.stringify(from) === JSON.stringify(next)) throw malformed(operation, 'a list that does not go on')
  return next
}
