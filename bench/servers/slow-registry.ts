// The control: a working registry that wastes CPU time on purpose. It must miss every bar.
// argv: a folder for blobs.
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { announce } from './listening.ts'

const folder = Bun.argv[2] ?? ''
const manifests = new Map<string, string>()
const ballast = new Uint8Array(256 * 1024)

/** The cost of hashing 256 KiB, several times the cost of a fast answer. */
function waste(): void {
  new Bun.CryptoHasher('sha256').update(ballast).digest()
}

async function receiveBlob(request: Request, digest: string): Promise<Response> {
  const file = openSync(blobPath(digest), 'w')
  // Four hashes instead of one.
  const hashers = Array.from({ length: 4 }, () => new Bun.CryptoHasher('sha256'))
  for await (const chunk of request.body ?? []) {
    for (const hasher of hashers) hasher.update(chunk)
    for (let written = 0; written < chunk.length; ) written += writeSync(file, chunk, written)
  }
  fsyncSync(file)
  closeSync(file)
  const good = hashers.every((hasher) => `sha256:${hasher.digest('hex')}` === digest)
  return new Response(null, { status: good ? 201 : 400 })
}

/** Every chunk passes through JavaScript and a hash, instead of from file to socket in the kernel. */
function sendBlob(digest: string): Response {
  const file = Bun.file(blobPath(digest))
  const hasher = new Bun.CryptoHasher('sha256')
  const hashing = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      hasher.update(chunk)
      controller.enqueue(chunk)
    },
  })
  return new Response(file.stream().pipeThrough(hashing), { headers: { 'Content-Length': `${file.size}` } })
}

async function receiveManifest(request: Request, reference: string): Promise<Response> {
  const body = await request.text()
  manifests.set(reference, body)
  manifests.set(digestOf(body), body)
  return new Response(null, { status: 201 })
}

function sendManifest(reference: string): Response {
  waste()
  const body = manifests.get(reference)
  if (body === undefined) return new Response(null, { status: 404 })
  const headers = {
    'Content-Type': 'application/vnd.oci.image.manifest.v1+json',
    'Docker-Content-Digest': digestOf(body),
  }
  return new Response(body, { headers })
}

function digestOf(body: string): string {
  return `sha256:${new Bun.CryptoHasher('sha256').update(body).digest('hex')}`
}

function blobPath(digest: string): string {
  return join(folder, digest.replace(':', '-'))
}

async function answer(request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url)
  const last = pathname.slice(pathname.lastIndexOf('/') + 1)
  if (pathname.includes('/manifests/'))
    return request.method === 'PUT' ? receiveManifest(request, last) : sendManifest(last)
  if (request.method === 'POST') return new Response(null, { status: 202, headers: { Location: `${pathname}session` } })
  if (request.method === 'PUT') return receiveBlob(request, searchParams.get('digest') ?? '')
  if (request.method === 'HEAD') return new Response(Bun.file(blobPath(last)))
  return sendBlob(last)
}

announce(Bun.serve({ hostname: '127.0.0.1', port: 0, maxRequestBodySize: 2 ** 40, idleTimeout: 0, fetch: answer }))
