// A registry in memory that does what the specification says and no more: the control runs every case against it, and
// then against it with one answer spoiled. It shares no code with Berth, so that the two cannot be wrong together.
import { type Algorithm, digestOf, mediaTypes, textBytes } from './content.ts'
import { isRecord } from './expectations.ts'

interface StoredManifest {
  readonly mediaType: string
  readonly bytes: Uint8Array
}

interface Shelf {
  readonly blobs: Map<string, Uint8Array>
  readonly manifests: Map<string, StoredManifest>
  readonly tags: Map<string, string>
}

interface Call {
  readonly request: Request
  readonly url: URL
  readonly name: string
  readonly shelf: Shelf
  readonly rest: string
  readonly body: Uint8Array
}

const statusesOfCodes: Readonly<Record<string, number>> = {
  DIGEST_INVALID: 400,
  UNAUTHORIZED: 401,
  BLOB_UNKNOWN: 404,
  BLOB_UPLOAD_UNKNOWN: 404,
  MANIFEST_UNKNOWN: 404,
  NAME_UNKNOWN: 404,
  UNSUPPORTED: 405,
  BLOB_UPLOAD_INVALID: 416,
  SIZE_INVALID: 416,
}

export class SoundRegistry {
  readonly #authorization: string
  readonly #shelves = new Map<string, Shelf>()
  readonly #uploads = new Map<string, Uint8Array>()

  constructor(authorization: string) {
    this.#authorization = authorization
  }

  async answer(request: Request): Promise<Response> {
    if (request.headers.get('authorization') !== this.#authorization) {
      return refuse(request, 'UNAUTHORIZED', { 'www-authenticate': 'Basic realm="control"' })
    }
    const url = new URL(request.url)
    if (url.pathname === '/v2/') return Response.json({})
    const match = /^\/v2\/(.+?)\/((?:blobs|manifests|tags|referrers)\/.+)$/.exec(url.pathname)
    const [, name = '', rest = ''] = match ?? []
    const body = new Uint8Array(await request.arrayBuffer())
    return this.#route({ request, url, name, rest, body, shelf: this.#shelfOf(name) })
  }

  #shelfOf(name: string): Shelf {
    const shelf = this.#shelves.get(name) ?? { blobs: new Map(), manifests: new Map(), tags: new Map() }
    this.#shelves.set(name, shelf)
    return shelf
  }

  #route(call: Call): Response {
    const { rest } = call
    const last = decodeURIComponent(rest.slice(rest.lastIndexOf('/') + 1))
    if (rest === 'blobs/uploads/') return this.#openUpload(call)
    if (rest.startsWith('blobs/uploads/')) return this.#continueUpload(call, last)
    if (rest.startsWith('blobs/')) return answerBlob(call, last)
    if (rest.startsWith('manifests/')) return answerManifest(call, last)
    if (rest.startsWith('referrers/')) return listReferrers(call, last)
    return listTags(call)
  }

  #openUpload(call: Call): Response {
    const query = call.url.searchParams
    const mount = query.get('mount')
    if (mount !== null) {
      const from = query.get('from')
      const sources = from === null ? [...this.#shelves.values()] : [this.#shelfOf(from)]
      const bytes = sources.flatMap(({ blobs }) => blobs.get(mount) ?? [])[0]
      if (bytes !== undefined) return storeBlob(call, mount, bytes)
    }
    const digest = query.get('digest')
    if (digest !== null) return storeBlob(call, digest, call.body)
    const id = crypto.randomUUID()
    this.#uploads.set(id, new Uint8Array())
    return uploadAnswer(call, 202, id, 0)
  }

  #continueUpload(call: Call, id: string): Response {
    const { request, body, url } = call
    const received = this.#uploads.get(id)
    if (received === undefined) return refuse(request, 'BLOB_UPLOAD_UNKNOWN')
    if (request.method === 'GET') return uploadAnswer(call, 204, id, received.length)
    if (request.method === 'DELETE') {
      this.#uploads.delete(id)
      return new Response(null, { status: 204 })
    }
    const start = request.headers.get('content-range')?.split('-')[0] ?? String(received.length)
    if (Number(start) !== received.length) return refuse(request, 'BLOB_UPLOAD_INVALID')
    const all = new Uint8Array(Buffer.concat([received, body]))
    if (request.method === 'PUT') return storeBlob(call, url.searchParams.get('digest') ?? '', all)
    this.#uploads.set(id, all)
    return uploadAnswer(call, 202, id, all.length)
  }
}

function refuse(request: Request, code: string, headers: Readonly<Record<string, string>> = {}): Response {
  const body = request.method === 'HEAD' ? null : JSON.stringify({ errors: [{ code }] })
  return new Response(body, { status: statusesOfCodes[code] ?? 500, headers: { ...json, ...headers } })
}

const json = { 'content-type': 'application/json' }

function hasDigest(bytes: Uint8Array, digest: string): boolean {
  return (['sha256', 'sha512'] satisfies Algorithm[]).some((algorithm) => digestOf(bytes, algorithm) === digest)
}

function uploadAnswer({ name }: Call, status: number, id: string, received: number): Response {
  const headers = { location: `/v2/${name}/blobs/uploads/${id}`, range: `0-${Math.max(0, received - 1)}` }
  return new Response(null, { status, headers })
}

function storeBlob({ request, name, shelf }: Call, digest: string, bytes: Uint8Array): Response {
  if (!hasDigest(bytes, digest)) return refuse(request, 'DIGEST_INVALID')
  shelf.blobs.set(digest, bytes)
  const headers = { location: `/v2/${name}/blobs/${digest}`, 'docker-content-digest': digest }
  return new Response(null, { status: 201, headers })
}

function content(
  request: Request,
  bytes: Uint8Array,
  headers: Readonly<Record<string, string>>,
  status = 200,
): Response {
  const all = { ...headers, 'content-length': String(bytes.length) }
  return new Response(request.method === 'HEAD' ? null : new Uint8Array(bytes), { status, headers: all })
}

function answerBlob({ request, shelf }: Call, digest: string): Response {
  const bytes = shelf.blobs.get(digest)
  if (bytes === undefined) return refuse(request, 'BLOB_UNKNOWN')
  if (request.method === 'DELETE') {
    shelf.blobs.delete(digest)
    return new Response(null, { status: 202 })
  }
  const headers = { 'docker-content-digest': digest, 'content-type': mediaTypes.octets }
  const range = /^bytes=(\d*)-(\d*)$/.exec(request.headers.get('range') ?? '')
  if (range === null) return content(request, bytes, headers)
  const [, from = '', to = ''] = range
  const first = from === '' ? bytes.length - Number(to) : Number(from)
  const last = from === '' || to === '' ? bytes.length - 1 : Math.min(Number(to), bytes.length - 1)
  if (first > last) return refuse(request, 'SIZE_INVALID', { 'content-range': `bytes */${bytes.length}` })
  const part = { ...headers, 'content-range': `bytes ${first}-${last}/${bytes.length}` }
  return content(request, bytes.subarray(first, last + 1), part, 206)
}

function answerManifest(call: Call, reference: string): Response {
  const { request, shelf } = call
  if (request.method === 'PUT') return storeManifest(call, reference)
  const digest = shelf.tags.get(reference) ?? reference
  const manifest = shelf.manifests.get(digest)
  if (manifest === undefined) return refuse(request, 'MANIFEST_UNKNOWN')
  if (request.method !== 'DELETE') {
    return content(request, manifest.bytes, { 'docker-content-digest': digest, 'content-type': manifest.mediaType })
  }
  if (!shelf.tags.delete(reference)) {
    shelf.manifests.delete(digest)
    for (const [tag, target] of [...shelf.tags]) if (target === digest) shelf.tags.delete(tag)
  }
  return new Response(null, { status: 202 })
}

function storeManifest({ request, url, name, shelf, body }: Call, reference: string): Response {
  const isByDigest = reference.includes(':')
  if (isByDigest && !hasDigest(body, reference)) return refuse(request, 'DIGEST_INVALID')
  const digest = isByDigest ? reference : digestOf(body)
  const tags = isByDigest ? url.searchParams.getAll('tag') : [reference]
  shelf.manifests.set(digest, { mediaType: request.headers.get('content-type') ?? '', bytes: body })
  for (const tag of tags) shelf.tags.set(tag, digest)
  const headers = new Headers({ location: `/v2/${name}/manifests/${digest}`, 'docker-content-digest': digest })
  const { subject } = parse(body)
  if (isRecord(subject)) headers.set('oci-subject', String(subject['digest']))
  if (isByDigest) for (const tag of tags) headers.append('oci-tag', tag)
  return new Response(null, { status: 201, headers })
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
  return isRecord(value) ? value : {}
}

function listTags({ request, url, name, shelf }: Call): Response {
  if (shelf.manifests.size === 0) return refuse(request, 'NAME_UNKNOWN')
  const last = url.searchParams.get('last') ?? ''
  const tags = [...shelf.tags.keys()].sort().filter((tag) => tag > last)
  return content(request, textBytes(JSON.stringify({ name, tags })), json)
}

function listReferrers({ request, url, shelf }: Call, subject: string): Response {
  const wanted = url.searchParams.get('artifactType')
  const manifests = [...shelf.manifests]
    .filter(([, { bytes }]) => subjectOf(bytes) === subject)
    .map(([digest, { mediaType, bytes }]) => describe(digest, mediaType, bytes))
    .filter(({ artifactType }) => wanted === null || artifactType === wanted)
  const body = textBytes(JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.index, manifests }))
  const filtered = wanted === null ? {} : { 'oci-filters-applied': 'artifactType' }
  return content(request, body, { 'content-type': mediaTypes.index, ...filtered })
}

function subjectOf(bytes: Uint8Array): unknown {
  const { subject } = parse(bytes)
  return isRecord(subject) ? subject['digest'] : undefined
}

function describe(digest: string, mediaType: string, bytes: Uint8Array) {
  const { artifactType, config, annotations } = parse(bytes)
  const type = artifactType ?? (isRecord(config) ? config['mediaType'] : undefined)
  return { mediaType, digest, size: bytes.length, artifactType: type, annotations }
}
