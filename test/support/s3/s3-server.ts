// What the tests know of an S3 server, whichever it is.
import { signHeaders } from './s3-signature.ts'

export interface S3Server {
  readonly name: 'stub' | 'ceph' | 'moto'
  readonly version: string
  /** Without the bucket, in either style. */
  readonly url: string
  readonly region: string
  readonly bucket: string
  readonly accessKey: string
  readonly secretKey: string
  readonly isPathStyle: boolean
  stop(): Promise<void>
}

type Place = Pick<S3Server, 'url' | 'region' | 'bucket' | 'accessKey' | 'secretKey'>

export interface S3Request {
  readonly method: string
  /** Name and query as they stand in the address; path style. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array<ArrayBuffer> | string
}

/**
 * A signed request of the test's own, past any client. On a connection of its own, because Bun repeats a PUT by itself
 * when one that was used before breaks.
 */
export async function askS3(server: Place, request: S3Request): Promise<Response> {
  const { method, target, headers = {}, body } = request
  const { region, bucket } = server
  const url = `${server.url}/${bucket}${target === '' || target.startsWith('?') ? target : `/${target}`}`
  const signed = await signHeaders({ method, url, region, headers, ...(body === undefined ? {} : { body }) }, server)
  return fetch(url, {
    method,
    headers: signed,
    redirect: 'manual',
    keepalive: false,
    ...(body === undefined ? {} : { body }),
  })
}

export interface S3Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The status, and S3's own word for what is wrong. */
  readonly code: string
}

export async function readS3(answer: Response | Promise<Response>): Promise<S3Answer> {
  const { status, headers } = await answer
  const text = await (await answer).text()
  return { status, headers, text, code: `${status} ${xmlField(text, 'Code') ?? ''}`.trim() }
}

/** The content of the first such element, as it is written. */
export function xmlField(text: string, name: string): string | undefined {
  return xmlFields(text, name)[0]
}

export function xmlFields(text: string, name: string): string[] {
  return [...text.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, value = '']) => value)
}

/** Undefined as long as the server is not there to be asked. */
export async function createBucket(server: Place): Promise<true | undefined> {
  const answer = await askS3(server, { method: 'PUT', target: '' }).catch(() => undefined)
  if (answer === undefined || answer.status >= 500) return undefined
  if (!answer.ok) throw new Error(`the bucket was refused with ${answer.status}: ${await answer.text()}`)
  return true
}
