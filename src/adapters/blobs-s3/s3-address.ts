import { encodePath, encodeText } from './signature-v4.ts'

export interface S3AddressSettings {
  /** `http(s)://host[:port][/base]` */
  readonly endpoint: string
  readonly bucket: string
  /** The bucket as the first segment of the path, and not as the first label of the host. */
  readonly isPathStyle: boolean
}

/** Where an object (or the bucket) is, written as the signature wants it. */
export interface S3Target {
  /** Without a query. */
  readonly url: string
  readonly host: string
  readonly path: string
}

const bucketPattern = /^[\w.-]{3,255}$/
const hostLabels = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/

export class S3Address {
  readonly #origin: string
  readonly #host: string
  /** Before the object's name: the endpoint's own path, and the bucket where it is a part of the path. */
  readonly #base: string

  constructor({ endpoint, bucket, isPathStyle }: S3AddressSettings) {
    const url = parseEndpoint(endpoint)
    if (!bucketPattern.test(bucket) || isDotted(bucket)) throw new Error('the name of the S3 bucket is not one')
    const path = url.pathname.replace(/\/+$/, '')
    const base = path.split('/').map(decodeURIComponent).map(encodeText).join('/')
    if (!isPathStyle) {
      if (!hostLabels.test(bucket)) throw new Error('the S3 bucket cannot be a part of a host name')
      url.host = `${bucket}.${url.host}`
      // URL leaves a host that it does not like as it was.
      if (!url.host.startsWith(`${bucket}.`)) throw new Error('the S3 endpoint cannot have the bucket before its host')
    }
    this.#origin = url.origin
    this.#host = url.host
    this.#base = isPathStyle ? `${base}/${encodeText(bucket)}` : base
  }

  /** Of an object, or of the bucket itself. */
  targetOf(name?: string): S3Target {
    if (name !== undefined && isDotted(name)) throw new Error('not the name of an object')
    const path = `${this.#base}/${name === undefined ? '' : encodePath(name)}`
    // The bucket as a part of the path has no slash behind it: some servers take that for an object without a name.
    const exact = name === undefined && path.length > 1 ? path.slice(0, -1) : path
    return { url: this.#origin + exact, host: this.#host, path: exact }
  }
}

function parseEndpoint(endpoint: string): URL {
  const url = URL.parse(endpoint)
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  if (!isPlain || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new Error('the S3 endpoint must be http(s)://host[:port][/base]')
  }
  return url
}

/** What a client of HTTP would resolve before it is sent, so that the signature would not fit, or another path be hit. */
function isDotted(name: string): boolean {
  return name === '' || name.split('/').some((segment) => segment === '.' || segment === '..')
}
