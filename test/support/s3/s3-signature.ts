// Signatures of S3, calculated by the library of AWS's own SDK: the tests sign their requests with it, and the stub checks
// signatures with it. The registry has its own signer, so each proves the other.
import { SignatureV4 } from '@smithy/signature-v4'
import { parseS3Query } from './s3-operation.ts'

export interface S3Keys {
  readonly accessKey: string
  readonly secretKey: string
  readonly sessionToken?: string | undefined
}

export interface RequestToSign {
  readonly method: string
  readonly url: string
  readonly region: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  readonly timeMs?: number
}

export const payloadHeader = 'x-amz-content-sha256'
export const unsignedPayload = 'UNSIGNED-PAYLOAD'

export function sha256Hex(bytes: string | Uint8Array): string {
  return Bun.CryptoHasher.hash('sha256', bytes, 'hex')
}

class Sha256 {
  readonly #hash: Bun.CryptoHasher

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = new Bun.CryptoHasher('sha256', secret as string | undefined)
  }

  update(data: Uint8Array): void {
    this.#hash.update(data)
  }

  async digest(): Promise<Uint8Array> {
    return new Uint8Array(this.#hash.digest())
  }

  reset(): never {
    throw new Error('a hash is used once')
  }
}

/** Encodes everything but the unreserved characters of RFC 3986, which is more than `encodeURIComponent` encodes. */
export function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
}

function signerOf({ accessKey, secretKey, sessionToken }: S3Keys, region: string): SignatureV4 {
  const credentials = {
    accessKeyId: accessKey,
    secretAccessKey: secretKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
  }
  return new SignatureV4({ service: 's3', region, credentials, sha256: Sha256, uriEscapePath: false })
}

function toSignable({ method, url, headers = {}, body }: RequestToSign) {
  const { protocol, hostname, pathname, search } = new URL(url)
  const path = pathname.split('/').map((segment) => encodeStrictly(decodeURIComponent(segment)))
  const query = Object.fromEntries(parseS3Query(search.slice(1)))
  return { protocol, hostname, method, path: path.join('/'), query, headers: { ...headers }, body }
}

/** Headers that make the request acceptable. `host` is one of them, because it is signed. */
export async function signHeaders(request: RequestToSign, keys: S3Keys): Promise<Record<string, string>> {
  const headers = {
    host: new URL(request.url).host,
    [payloadHeader]: sha256Hex(request.body ?? ''),
    ...request.headers,
  }
  const signable = toSignable({ ...request, headers })
  const signableHeaders = new Set(Object.keys(headers))
  const signingDate = new Date(request.timeMs ?? Date.now())
  return (await signerOf(keys, request.region).sign(signable, { signingDate, signableHeaders })).headers
}

/** The address with a signature in its query, which is valid for `lifetimeSeconds`. */
export async function presign(
  request: RequestToSign & { readonly lifetimeSeconds: number },
  keys: S3Keys,
): Promise<string> {
  const { origin, pathname, host } = new URL(request.url)
  const headers = { host, ...request.headers, [payloadHeader]: unsignedPayload }
  const query = await presignQuery({ ...request, headers }, request.lifetimeSeconds, keys)
  const pairs = Object.entries(query).map(([name, value]) => `${encodeStrictly(name)}=${encodeStrictly(String(value))}`)
  return `${origin}${pathname}?${pairs.join('&')}`
}

/** The query of a signed address. `headers` holds the hash of the payload, which is neither a header nor a parameter. */
export async function presignQuery(request: RequestToSign, expiresIn: number, keys: S3Keys) {
  const signed = await signerOf(keys, request.region).presign(toSignable(request), {
    signingDate: new Date(request.timeMs ?? Date.now()),
    expiresIn,
    unhoistableHeaders: new Set([payloadHeader]),
    unsignableHeaders: new Set([payloadHeader]),
  })
  return signed.query ?? {}
}
