import type { HttpDownloads } from '../../lib/http-downloads.ts'

/** What proves the bytes of a body to S3. */
export type Checksum = 'sha256' | 'crc32' | 'none'

/** The body of a request: an object, a part of one, or a document. */
export interface S3Body {
  readonly bytes: Uint8Array | Blob
  /** SHA-256 of the bytes in hex. It is signed; without it, the payload is unsigned. */
  readonly sha256: string | undefined
  /** CRC-32 of the bytes as S3 writes it: four bytes in base64. */
  readonly crc32: string | undefined
}

export function formatCrc32(crc: number): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(crc)
  return bytes.toString('base64')
}

/** A small body, such as a document. Part buffers compute both values while they are filled. */
export function toBody(bytes: Uint8Array): S3Body {
  const sha256 = Bun.CryptoHasher.hash('sha256', bytes, 'hex')
  return { bytes, sha256, crc32: formatCrc32(Bun.hash.crc32(bytes)) }
}

/** A request that is signed and ready to be sent. */
export interface SignedRequest {
  readonly operation: string
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: S3Body | undefined
  /** How long to wait for the headers of the response. */
  readonly timeoutMs: number
  /** An idle connection may be closed already. The client then cannot know whether the request was carried out. */
  readonly isOnFreshConnection: boolean
  /** The response has a long body. */
  readonly isDownload: boolean
}

/** The HTTP clients of a sender. `fetch` needs more CPU time for long bodies, but sends bodies too. */
export interface HttpClients {
  readonly session: Bun.FetchSession
  readonly downloads: HttpDownloads
}

/** A response whose head has arrived. */
export interface IncomingResponse {
  readonly status: number
  readonly headers: Headers
  /** The next bytes of the body, or no value after the last ones. */
  read(): Promise<{ readonly value?: Uint8Array | undefined }>
}

/** The HTTP client copies a body that it gets as an array. Larger bodies are streamed in pieces of this size. */
const streamedAboveBytes = 256 * 1024

export function sizeOfBody({ bytes }: S3Body): number {
  return bytes instanceof Blob ? bytes.size : bytes.length
}

/** A file is streamed too: on an encrypted connection it would otherwise be read into memory as a whole. */
export function toRequestBody({ bytes }: S3Body): Uint8Array | ReadableStream<Uint8Array> {
  if (bytes instanceof Blob) return bytes.stream()
  if (bytes.length <= streamedAboveBytes) return bytes
  let at = 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        // The array of a discarded part buffer is empty: the body ends early.
        if (at < bytes.length) controller.enqueue(bytes.subarray(at, at + streamedAboveBytes))
        at += streamedAboveBytes
        if (at >= bytes.length) controller.close()
      },
    },
    { highWaterMark: 0 },
  )
}

/** Resolves when the head of the response has arrived. */
export async function send(
  request: SignedRequest,
  { session, downloads }: HttpClients,
  signal: AbortSignal,
): Promise<IncomingResponse> {
  const { url, headers } = request
  if (request.isDownload) return downloads.get(url, headers, signal)
  const response = await session.fetch(url, toInit(request, signal))
  const reader = response.body?.getReader()
  return { status: response.status, headers: response.headers, read: async () => (await reader?.read()) ?? {} }
}

function toInit(request: SignedRequest, signal: AbortSignal): BunFetchRequestInit {
  const { method, headers, body } = request
  // No redirects: another server must not get the signature. No decompression: bytes are served as they are stored. No
  // idle timeout of the HTTP client: this adapter has its own.
  const init = { method, redirect: 'manual', decompress: false, timeout: false, signal } as const
  const keepalive = !request.isOnFreshConnection
  if (body === undefined) return { ...init, keepalive, headers }
  return {
    ...init,
    keepalive,
    headers: { ...headers, 'content-length': String(sizeOfBody(body)) },
    body: toRequestBody(body) as Bun.BodyInit,
  }
}
