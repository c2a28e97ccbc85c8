// What a request means in S3: the stub answers by it, the fault proxy chooses by it.

/** Each with the parameters that the stub knows, beside those of signatures; another would mean something that it does not do. */
export const s3Parameters = {
  PutObject: [],
  GetObject: ['response-content-type', 'response-content-disposition', 'response-cache-control'],
  HeadObject: [],
  DeleteObject: [],
  CreateMultipartUpload: ['uploads'],
  UploadPart: ['partNumber', 'uploadId'],
  CompleteMultipartUpload: ['uploadId'],
  AbortMultipartUpload: ['uploadId'],
  ListMultipartUploads: ['uploads', 'prefix', 'key-marker', 'upload-id-marker', 'max-uploads'],
  ListParts: ['uploadId'],
  ListObjects: ['list-type', 'prefix', 'continuation-token', 'max-keys'],
  HeadBucket: [],
  CreateBucket: [],
} satisfies Record<string, readonly string[]>

export type S3Operation = keyof typeof s3Parameters

export interface S3Target {
  /** Undefined where it is none that we know. */
  readonly operation: S3Operation | undefined
  readonly bucket: string
  /** The object's name, decoded; empty where the request is about the bucket. */
  readonly name: string
  readonly query: ReadonlyMap<string, string>
}

/** `target` is the request target as it stood on the wire; a malformed escape in it throws a URIError. */
export function parseS3Target(method: string, host: string, target: string): S3Target {
  const mark = target.indexOf('?')
  const path = mark === -1 ? target : target.slice(0, mark)
  const query = new Map(mark === -1 ? [] : parseS3Query(target.slice(mark + 1)))
  // Virtual host style: the bucket is the first label of the host's name.
  const hosted = /^(.+)\.localhost(?::\d+)?$/.exec(host)?.[1]
  const [, first = '', rest = ''] = /^\/([^/]*)\/?(.*)$/s.exec(path) ?? []
  const bucket = hosted ?? decodeURIComponent(first)
  const name = decodeURIComponent(hosted === undefined ? rest : path.slice(1))
  return { operation: nameOperation(method, name !== '', query), bucket, name, query }
}

/** In the order of the request; names and values decoded. */
export function parseS3Query(query: string): [string, string][] {
  const decode = (text: string) => decodeURIComponent(text.replaceAll('+', ' '))
  return query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const [name = '', ...value] = pair.split('=')
      return [decode(name), decode(value.join('='))]
    })
}

function nameOperation(method: string, isObject: boolean, query: ReadonlyMap<string, string>): S3Operation | undefined {
  const hasUploadId = query.has('uploadId')
  const table: Readonly<Record<string, S3Operation | undefined>> = isObject
    ? {
        PUT: hasUploadId || query.has('partNumber') ? 'UploadPart' : 'PutObject',
        GET: hasUploadId ? 'ListParts' : 'GetObject',
        HEAD: 'HeadObject',
        DELETE: hasUploadId ? 'AbortMultipartUpload' : 'DeleteObject',
        POST: hasUploadId ? 'CompleteMultipartUpload' : query.has('uploads') ? 'CreateMultipartUpload' : undefined,
      }
    : { PUT: 'CreateBucket', HEAD: 'HeadBucket', GET: query.has('uploads') ? 'ListMultipartUploads' : 'ListObjects' }
  return table[method]
}
