export interface S3AddressSettings {
  /** `http(s)://host[:port][/base]` */
  readonly endpoint: string
  readonly bucket: string
  /** The bucket is the first segment of the path instead of the first label of the host name. */
  readonly isPathStyle: boolean
}

/** The address of an object or of the bucket, without a query, encoded as the signature requires. */
interface S3Url {
  readonly url: string
  readonly host: string
  readonly path: string
}

const bucketPattern = /^[\w.-]{3,255}$/
const hostLabels = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/

export class S3Address {
  readonly #origin: string
  readonly #host: string
  /** The path before the name of an object: the path of the endpoint, and the bucket in path style. */
  readonly #base: string

  constructor({ endpoint, bucket, isPathStyle }: S3AddressSettings) {
    const url = parseEndpoint(endpoint)
    if (!bucketPattern.test(bucket) || hasDotSegment(bucket)) throw new Error('the name of the S3 bucket is not valid')
    const path = url.pathname.replace(/\/+$/, '')
    const base = path.split('/').map(decodeURIComponent).map(encodeText).join('/')
    if (!isPathStyle) {
      if (!hostLabels.test(bucket)) throw new Error('the name of the S3 bucket cannot be part of a host name')
      url.host = `${bucket}.${url.host}`
      // URL ignores a host that is not valid.
      if (!url.host.startsWith(`${bucket}.`)) throw new Error('the S3 endpoint cannot have the bucket before its host')
    }
    this.#origin = url.origin
    this.#host = url.host
    this.#base = isPathStyle ? `${base}/${encodeText(bucket)}` : base
  }

  /** Of an object, or of the bucket. */
  urlOf(name?: string): S3Url {
    if (name !== undefined && hasDotSegment(name)) throw new Error('the name of the S3 object is not valid')
    const path = `${this.#base}/${name === undefined ? '' : encodePath(name)}`
    // In path style, the bucket has no slash behind it: some servers take that for an object without a name.
    const exact = name === undefined && path.length > 1 ? path.slice(0, -1) : path
    return { url: this.#origin + exact, host: this.#host, path: exact }
  }
}

function parseEndpoint(endpoint: string): URL {
  const url = URL.parse(endpoint)
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  if (!isPlain || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new Error('the S3 endpoint must have the form http(s)://host[:port][/base]')
  }
  return url
}

/** An HTTP client resolves `.` and `..`: the signature would not match, or the request would reach another object. */
function hasDotSegment(name: string): boolean {
  return name === '' || name.split('/').some((segment) => segment === '.' || segment === '..')
}

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | undefined
  /** Undefined: they do not expire. */
  readonly expiresAt: number | undefined
}

/** The signed parts of a request. Path and query are encoded; names of headers are in lower case and include `host`. */
interface RequestToSign {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
  /** SHA-256 of the body in hex, or `unsignedPayload`. */
  readonly payloadHash: string
}

export const unsignedPayload = 'UNSIGNED-PAYLOAD'
export const emptyPayloadHash = Bun.CryptoHasher.hash('sha256', '', 'hex')

const algorithm = 'AWS4-HMAC-SHA256'
const unreserved = /^[\w.~-]*$/

/** Percent-encoding of everything except letters, digits and `-._~`, as the signature requires. */
export function encodeText(text: string): string {
  if (unreserved.test(text)) return text
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Only for S3 is the signed path encoded once; for all other services it is encoded twice. */
export function encodePath(path: string): string {
  return path.split('/').map(encodeText).join('/')
}

export type QueryParameters = readonly (readonly [name: string, value: string])[]

/** Encoded and sorted as the signature requires. */
export function encodeQuery(parameters: QueryParameters): string {
  return parameters
    .map(([name, value]) => [encodeText(name), encodeText(value)] as const)
    .sort((a, b) => compareTexts(a[0], b[0]) || compareTexts(a[1], b[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

/**
 * AWS Signature Version 4 for S3, in headers or in a presigned URL. Own code, because packages cost several times as much
 * per request and cannot sign synchronously: docs/decisions/0020-s3.md has the measurement.
 */
export class SignatureV4 {
  readonly #region: string
  /** The signing key changes once a day. Keeping it saves four of the six HMACs of a signature. */
  #dayKey: { readonly day: string; readonly secret: string; readonly key: Uint8Array } | undefined

  constructor(region: string) {
    this.#region = region
  }

  /** All headers of the request: the given ones, and those of the signature. */
  sign(request: RequestToSign, credentials: S3Credentials, nowMs: number): Record<string, string> {
    const time = compactTime(nowMs)
    const headers: Record<string, string> = {
      ...request.headers,
      'x-amz-content-sha256': request.payloadHash,
      'x-amz-date': time,
    }
    if (credentials.sessionToken !== undefined) headers['x-amz-security-token'] = credentials.sessionToken
    const names = Object.keys(headers).sort(compareTexts)
    const lines = names.map((name) => `${name}:${(headers[name] ?? '').trim().replace(/\s+/g, ' ')}\n`).join('')
    const signed = names.join(';')
    const { method, path, query, payloadHash } = request
    const canonical = `${method}\n${path}\n${query}\n${lines}\n${signed}\n${payloadHash}`
    const scope = this.#scopeOf(time)
    const signature = this.#signatureOf(canonical, scope, time, credentials)
    headers['authorization'] =
      `${algorithm} Credential=${credentials.accessKeyId}/${scope},SignedHeaders=${signed},Signature=${signature}`
    return headers
  }

  /** The query of a URL with which anybody can GET the object until `lifetimeSeconds` from now. */
  presign(host: string, path: string, credentials: S3Credentials, nowMs: number, lifetimeSeconds: number): string {
    const time = compactTime(nowMs)
    const scope = this.#scopeOf(time)
    const token = credentials.sessionToken
    // Already in the order of the signature: every redirect of a download runs this code.
    const query =
      `X-Amz-Algorithm=${algorithm}&X-Amz-Credential=${encodeText(`${credentials.accessKeyId}/${scope}`)}` +
      `&X-Amz-Date=${time}&X-Amz-Expires=${lifetimeSeconds}` +
      (token === undefined ? '' : `&X-Amz-Security-Token=${encodeText(token)}`) +
      '&X-Amz-SignedHeaders=host'
    const canonical = `GET\n${path}\n${query}\nhost:${host}\n\nhost\n${unsignedPayload}`
    return `${query}&X-Amz-Signature=${this.#signatureOf(canonical, scope, time, credentials)}`
  }

  #scopeOf(time: string): string {
    return `${time.slice(0, 8)}/${this.#region}/s3/aws4_request`
  }

  #signatureOf(canonical: string, scope: string, time: string, credentials: S3Credentials): string {
    const digest = Bun.CryptoHasher.hash('sha256', canonical, 'hex')
    const key = this.#keyOf(time.slice(0, 8), credentials.secretAccessKey)
    return hmac(key, `${algorithm}\n${time}\n${scope}\n${digest}`).digest('hex')
  }

  #keyOf(day: string, secret: string): Uint8Array {
    if (this.#dayKey?.day !== day || this.#dayKey.secret !== secret) {
      const parts = [day, this.#region, 's3', 'aws4_request']
      const start: Uint8Array = Buffer.from(`AWS4${secret}`)
      this.#dayKey = { day, secret, key: parts.reduce((key, part) => hmac(key, part).digest(), start) }
    }
    return this.#dayKey.key
  }
}

function hmac(key: Uint8Array, text: string): Bun.CryptoHasher {
  return new Bun.CryptoHasher('sha256', key).update(text)
}

/** `20130524T000000Z` */
function compactTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace(/[:-]/g, '')}Z`
}

/** All compared texts are ASCII. A comparison by locale would give another order. */
function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
