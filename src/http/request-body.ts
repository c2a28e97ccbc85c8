import { ByteSource } from '../lib/byte-source.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Exchange, HttpSettings } from './exchange.ts'

/** A request's body as a source of chunks. A sender that goes away or crawls is told so in our words. */
export function openBody(request: Request, settings: HttpSettings): ByteSource {
  const encoding = request.headers.get('content-encoding')
  // Stored bytes are the bytes that were sent; decoding them would be another thing, and a bomb besides.
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

/** The length that the request announces, if it does. Chunked bodies do not. */
export function announcedLength(request: Request): number | undefined {
  const length = request.headers.get('content-length')
  return length === null ? undefined : Number(length)
}

/** Whether a body follows the headers. Bun hides the body of GET and HEAD, but the client sends it all the same. */
export function announcesBody(request: Request): boolean {
  return request.body !== null || (announcedLength(request) ?? 0) > 0 || request.headers.has('transfer-encoding')
}

/**
 * A small body, whole. One that is larger than `max`, or says that it is, is refused without being read on. Memory for it is
 * reserved first: as much as the request announces, or else as much as it may send.
 */
export async function readAtMost(exchange: Exchange, max: number, tooLarge: () => Error): Promise<Uint8Array> {
  const announced = announcedLength(exchange.request)
  if ((announced ?? 0) > max) throw tooLarge()
  const source = exchange.body()
  if (announcesBody(exchange.request)) await exchange.reserve(announced ?? max)
  return announced === undefined ? gather(source, max, tooLarge) : fill(new Uint8Array(announced), source, tooLarge)
}

/** Into one buffer, so that the bytes are never in memory twice. */
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
