// AWS Signature Version 4 for S3, written from the protocol alone: what the stub checks by, and what the tests' own
// requests are signed with. It shares nothing with the registry's signer, so that one can prove the other.
import { createHash, createHmac } from 'node:crypto'
import { parseS3Query } from './s3-operation.ts'

export interface S3Keys {
  readonly accessKey: string
  readonly secretKey: string
  readonly sessionToken?: string | undefined
}

export interface CanonicalParts {
  readonly method: string
  /** The request target as on the wire. */
  readonly target: string
  readonly headers: Headers
  readonly signedNames: readonly string[]
  readonly payloadHash: string
}

export interface Scope {
  /** `YYYYMMDDTHHMMSSZ`. */
  readonly stamp: string
  readonly region: string
}

export const algorithm = 'AWS4-HMAC-SHA256'
export const unsignedPayload = 'UNSIGNED-PAYLOAD'

export function sha256Hex(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Everything but the unreserved characters of RFC 3986, which is more than encodeURIComponent takes. */
export function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function canonicalQuery(query: string): string {
  return parseS3Query(query)
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [encodeStrictly(name), encodeStrictly(value)] as const)
    .sort(([a, x], [b, y]) => compare(a, b) || compare(x, y))
    .map((pair) => pair.join('='))
    .join('&')
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export function canonicalRequest({ method, target, headers, signedNames, payloadHash }: CanonicalParts): string {
  const [path = '/', ...query] = target.split('?')
  const segments = path.split('/').map((segment) => encodeStrictly(decodeURIComponent(segment)))
  const lines = signedNames.map((name) => `${name}:${(headers.get(name) ?? '').trim().replace(/ +/g, ' ')}\n`)
  return [
    method,
    segments.join('/'),
    canonicalQuery(query.join('?')),
    lines.join(''),
    signedNames.join(';'),
    payloadHash,
  ].join('\n')
}

export function signatureOf(canonical: string, secretKey: string, { stamp, region }: Scope): string {
  const day = stamp.slice(0, 8)
  const text = [algorithm, stamp, `${day}/${region}/s3/aws4_request`, sha256Hex(canonical)].join('\n')
  const key = [day, region, 's3', 'aws4_request'].reduce<Buffer>(
    (secret, word) => createHmac('sha256', secret).update(word).digest(),
    Buffer.from(`AWS4${secretKey}`),
  )
  return createHmac('sha256', key).update(text).digest('hex')
}

export function stampOf(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/[-:]|\.\d+/g, '')
}

export interface RequestToSign {
  readonly method: string
  readonly url: string
  readonly region: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  readonly timeMs?: number
}

/** Headers that make the request acceptable; `host` is among them, as it was signed. */
export function signHeaders(request: RequestToSign, keys: S3Keys): Record<string, string> {
  const { host, pathname, search } = new URL(request.url)
  const stamp = stampOf(request.timeMs ?? Date.now())
  const headers = new Headers({
    host,
    'x-amz-date': stamp,
    'x-amz-content-sha256': sha256Hex(request.body ?? ''),
    ...(keys.sessionToken === undefined ? {} : { 'x-amz-security-token': keys.sessionToken }),
    ...request.headers,
  })
  const signedNames = [...headers.keys()].sort()
  const payloadHash = headers.get('x-amz-content-sha256') ?? unsignedPayload
  const canonical = canonicalRequest({
    method: request.method,
    target: pathname + search,
    headers,
    signedNames,
    payloadHash,
  })
  const signature = signatureOf(canonical, keys.secretKey, { stamp, region: request.region })
  const credential = `${keys.accessKey}/${stamp.slice(0, 8)}/${request.region}/s3/aws4_request`
  headers.set(
    'authorization',
    `${algorithm} Credential=${credential}, SignedHeaders=${signedNames.join(';')}, Signature=${signature}`,
  )
  return Object.fromEntries(headers)
}

/** The address with a signature in its query, good for `lifetimeSeconds`. */
export function presign(request: RequestToSign & { readonly lifetimeSeconds: number }, keys: S3Keys): string {
  const url = new URL(request.url)
  const stamp = stampOf(request.timeMs ?? Date.now())
  const query = {
    'X-Amz-Algorithm': algorithm,
    'X-Amz-Credential': `${keys.accessKey}/${stamp.slice(0, 8)}/${request.region}/s3/aws4_request`,
    'X-Amz-Date': stamp,
    'X-Amz-Expires': String(request.lifetimeSeconds),
    'X-Amz-SignedHeaders': 'host',
    ...(keys.sessionToken === undefined ? {} : { 'X-Amz-Security-Token': keys.sessionToken }),
  }
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeStrictly(value)}`)
  const search = [...(url.search === '' ? [] : [url.search.slice(1)]), ...pairs].join('&')
  const canonical = canonicalRequest({
    method: request.method,
    target: `${url.pathname}?${search}`,
    headers: new Headers({ host: url.host }),
    signedNames: ['host'],
    payloadHash: unsignedPayload,
  })
  const signature = signatureOf(canonical, keys.secretKey, { stamp, region: request.region })
  return `${url.origin}${url.pathname}?${search}&X-Amz-Signature=${signature}`
}
