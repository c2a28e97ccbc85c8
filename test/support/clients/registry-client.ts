// Requests to a running registry, in one line each.
import type { Digest } from '../../../src/oci/digest.ts'
import { digestOf } from '../basics/generated-bytes.ts'
import { testApiKey } from '../basics/test-project.ts'

export interface Target {
  readonly url: string
}

export const authorization = `Basic ${btoa(`apikey:${testApiKey}`)}`

export interface PushedImage {
  readonly digest: Digest
  readonly bytes: Uint8Array
  readonly blobs: readonly Digest[]
}

export function ask(target: Target, method: string, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  headers.set('authorization', authorization)
  return fetch(target.url + path, { redirect: 'manual', ...init, method, headers })
}

/** As `ask`. Any other status fails the test with the server's message. */
export async function expectStatus(status: number, asked: Promise<Response>): Promise<Response> {
  const answer = await asked
  if (answer.status !== status) throw new Error(`expected ${status}, got ${answer.status}: ${await answer.text()}`)
  return answer
}

/** The body of an answer that must be 200. */
export async function jsonOf<T>(asked: Promise<Response>): Promise<T> {
  return (await (await expectStatus(200, asked)).json()) as T
}

/** A blob in one request. */
export async function pushBlob(target: Target, repository: string, bytes: Uint8Array): Promise<Digest> {
  const digest = digestOf(bytes)
  const path = `/v2/${repository}/blobs/uploads/?digest=${digest}`
  await expectStatus(201, ask(target, 'POST', path, { body: new Uint8Array(bytes) }))
  return digest
}

/** Opens an upload session; gives its path. */
export async function openSession(target: Target, repository: string): Promise<string> {
  const answer = await expectStatus(202, ask(target, 'POST', `/v2/${repository}/blobs/uploads/`))
  return answer.headers.get('location') ?? ''
}

/** How many bytes the session holds, as it says itself. */
export async function receivedBytes(target: Target, session: string): Promise<number> {
  const answer = await expectStatus(204, ask(target, 'GET', session))
  const last = Number(answer.headers.get('range')?.replace('0-', ''))
  // Nothing and one byte look alike on the wire: `0-0`.
  return last === 0 ? 0 : last + 1
}

export function patch(target: Target, session: string, bytes: Uint8Array, first?: number): Promise<Response> {
  const headers = first === undefined ? {} : { 'content-range': `${first}-${first + bytes.length - 1}` }
  return ask(target, 'PATCH', session, { body: new Uint8Array(bytes), headers })
}

export function finish(target: Target, session: string, digest: string, rest?: Uint8Array): Promise<Response> {
  const init = rest === undefined ? {} : { body: new Uint8Array(rest) }
  return ask(target, 'PUT', `${session}?digest=${digest}`, init)
}

/** Sends what the session has not got yet, and closes it. */
export async function completeUpload(target: Target, session: string, whole: Uint8Array): Promise<void> {
  const received = await receivedBytes(target, session)
  await expectStatus(201, finish(target, session, digestOf(whole), whole.subarray(received)))
}

export function manifestOfBlobs(config: Uint8Array, layers: readonly Uint8Array[], annotation = ''): Uint8Array {
  const descriptor = (bytes: Uint8Array, mediaType: string) => ({
    mediaType,
    digest: digestOf(bytes),
    size: bytes.length,
  })
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: descriptor(config, 'application/vnd.oci.image.config.v1+json'),
    layers: layers.map((layer) => descriptor(layer, 'application/vnd.oci.image.layer.v1.tar')),
    annotations: { note: annotation },
  }
  return new TextEncoder().encode(JSON.stringify(manifest))
}

export function putManifest(
  target: Target,
  repository: string,
  reference: string,
  bytes: Uint8Array,
): Promise<Response> {
  const mediaType: unknown = JSON.parse(new TextDecoder().decode(bytes)).mediaType
  const headers = { 'content-type': String(mediaType) }
  return ask(target, 'PUT', `/v2/${repository}/manifests/${reference}`, { body: new Uint8Array(bytes), headers })
}

/** Blobs first, the manifest last, as every client does. */
export async function pushImage(
  target: Target,
  repository: string,
  tag: string,
  layers: readonly Uint8Array[],
): Promise<PushedImage> {
  const config = new TextEncoder().encode(JSON.stringify({ architecture: 'amd64', os: 'linux', tag }))
  const blobs: Digest[] = []
  for (const blob of [config, ...layers]) blobs.push(await pushBlob(target, repository, blob))
  const bytes = manifestOfBlobs(config, layers, tag)
  await expectStatus(201, putManifest(target, repository, tag, bytes))
  return { digest: digestOf(bytes), bytes, blobs }
}

/** What is served under a blob's digest: `whole`, or what is wrong with it. */
export async function checkBlob(target: Target, repository: string, digest: string): Promise<string> {
  const answer = await ask(target, 'GET', `/v2/${repository}/blobs/${digest}`)
  const bytes = new Uint8Array(await answer.arrayBuffer())
  if (answer.status !== 200) return `status ${answer.status}`
  return digestOf(bytes, digest.startsWith('sha512:') ? 'sha512' : 'sha256') === digest ? 'whole' : 'other bytes'
}
