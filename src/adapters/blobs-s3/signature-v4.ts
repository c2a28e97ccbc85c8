import type { S3Credentials } from './credential-source.ts'

/** What is signed of a request: path and query as they go over the wire; header names in lower case, with `host`. */
interface Signable {
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

/** Percent-encoding as the signature wants it: all but letters, digits and `-._~`, hex in capitals. */
export function encodeText(text: string): string {
  if (unreserved.test(text)) return text
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Each segment by itself; S3 alone among the services signs a path that is encoded once. */
export function encodePath(path: string): string {
  return path.split('/').map(encodeText).join('/')
}

/** Encoded and in the order of the signature, so that what is sent is what is signed. */
export function encodeQuery(parameters: readonly (readonly [name: string, value: string])[]): string {
  return parameters
    .map(([name, value]) => [encodeText(name), encodeText(value)] as const)
    .sort((a, b) => compareTexts(a[0], b[0]) || compareTexts(a[1], b[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

/** AWS Signature Version 4 for S3: in headers, and in an address that anybody may use for a while. */
export class SignatureV4 {
  readonly #region: string
  /** A key is good for a day: four of the six HMACs of a signature are spared. */
  #dayKey: { readonly day: string; readonly secret: string; readonly key: Uint8Array } | undefined

  constructor(region: string) {
    this.#region = region
  }

  /** All headers of the request, those that were given and those that sign it. */
  sign(request: Signable, credentials: S3Credentials, nowMs: number): Record<string, string> {
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

  /** The query that makes an address of S3 good for `GET` until `lifetimeSeconds` from now. */
  presign(host: string, path: string, credentials: S3Credentials, nowMs: number, lifetimeSeconds: number): string {
    const time = compactTime(nowMs)
    const scope = this.#scopeOf(time)
    const token = credentials.sessionToken
    // In the order of the signature as it stands: this is the hottest path of a registry that redirects.
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

/** By their bytes: all of them are ASCII here, and no locale may have a say. */
function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
