import { ByteSource } from '../lib/byte-source.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Exchange, HttpSettings } from './exchange.ts'

/** The body of a request as a source of chunks. It fails with a refusal if the sender disconnects or is too slow. */
export function openBody(request: Request, settings: HttpSettings): ByteSource {
  const encoding = request.headers.get('content-encoding')
  // The sent bytes are stored unchanged, because digests depend on them. A decoded body could also be enormous.
  if (encoding !== null && encoding.toLowerCase() !== 'identity') {
    throw new RegistryRefusal('content-encoding-unsupported')
  }
  return new ByteSource(request.body, {
    bytesPerSecondMin: settings.bodyBytesPerSecondMin,
    windowMs: settings.bodyWindowMs,
    tooSlow: () => new RegistryRefusal('body-too-slow'),
    broken: () => new RegistryRefusal('body-incomplete', { reason: 'the client closed the connection' }),
  })
}

/** The length that the request announces. Undefined for a chunked body. */
export function announcedLength(request: Request): number | undefined {
  const length = request.headers.get('content-length')
  return length === null ? undefined : Number(length)
}

/** Whether a body follows the headers. Bun hides the body of GET and HEAD, but the client sends it nevertheless. */
export function announcesBody(request: Request): boolean {
  return request.body !== null || (announcedLength(request) ?? 0) > 0 || request.headers.has('transfer-encoding')
}

/**
 * Reads a whole small body. A body larger than `max`, or announced as larger, is refused without reading the rest.
 * Memory is reserved first: the announced length, or else the largest allowed length.
 */
export async function readAtMost(exchange: Exchange, max: number, tooLarge: () => Error): Promise<Uint8Array> {
  const announced = announcedLength(exchange.request)
  if ((announced ?? 0) > max) throw tooLarge()
  const source = exchange.body()
  if (announcesBody(exchange.request)) await exchange.reserve(announced ?? max)
  return announced === undefined ? gather(source, max, tooLarge) : fill(new Uint8Array(announced), source, tooLarge)
}

/** Reads into one buffer, so that the bytes are in memory only once. */
async function fill(whole: Uint8Array, source: ByteSource, tooLarge: () => Error): Promise<Uint8Array> {
  let bytes = 0
  for await (const chunk of source) {
    if (bytes + chunk.length > whole.length) throw tooLarge()
    whole.set(chunk, bytes)
    bytes += chunk.length
  }
  return bytes === whole.length ? whole : whole.slice(0, bytes)
}

async function gather(source: ByteSource, max: number, tooLarge: () => Error): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > max) throw tooLarge()
    chunks.push(chunk)
  }
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}
