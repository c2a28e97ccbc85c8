// The faults of the fault proxy: each has happened with some S3 server or some network. The second half relays one request and its
// response, and changes them as the fault requires.
import { connect, type Socket } from 'node:net'
import type { S3Operation } from '../s3/s3-operation.ts'
import { writeXml } from '../s3/s3-stub-xml.ts'
import { framingOfRequest, framingOfResponse, type Head, parseHead, WireEnd, WireReader, writeTo } from './http-wire.ts'

export type FaultName =
  | '500'
  | '500 after effect'
  | '503 SlowDown'
  /** The connection is reset before the server gets the request. */
  | 'reset before'
  /** The server gets `afterBytes` of the body (by default half of it); then both connections are reset. */
  | 'reset mid-request-body'
  /** The client gets the head and `afterBytes` of the body (by default half of it), then a reset. */
  | 'reset mid-response-body'
  /** The same, but the connection is closed normally. */
  | 'end mid-response-body'
  /** The server carries out the request; the client gets a reset instead of the response. */
  | 'reset after effect'
  /** No response; the server does not get the request. */
  | 'timeout before effect'
  /** No response; the server has carried out the request. */
  | 'timeout after effect'
  /** CompleteMultipartUpload sends status 200 and then an error. Nothing was done. */
  | '200 with error'
  /** The same, but the upload was completed. */
  | '200 with error after effect'
  /** In a response to PutObject or UploadPart. */
  | 'wrong ETag'
  /** One byte too much. */
  | 'wrong size on HEAD'
  /** The response arrives in small pieces, slowly. */
  | 'slow'

export interface FaultDetails {
  readonly afterBytes?: number
  readonly retryAfterSeconds?: number
  readonly drip?: Drip
}

export type Fault = (exchange: RelayedExchange, details: FaultDetails) => Promise<Ending>

/** Faults that exist only for these operations. */
export const faultPlaces: Readonly<Partial<Record<FaultName, readonly S3Operation[]>>> = {
  '200 with error': ['CompleteMultipartUpload'],
  '200 with error after effect': ['CompleteMultipartUpload'],
  'wrong ETag': ['PutObject', 'UploadPart'],
  'wrong size on HEAD': ['HeadObject'],
}

/** The proxy takes the whole request, and the server does not get it. */
const before =
  (end: Fault): Fault =>
  async (exchange, details) => {
    await readBody(exchange)
    return end(exchange, details)
  }

/** The server carries out the request, and its response is not relayed. */
const afterEffect =
  (end: Fault): Fault =>
  async (exchange, details) => {
    await relay(exchange, { isSwallowed: true })
    return end(exchange, details)
  }

const internalError: Fault = (exchange) => respondWithError(exchange, '500 Internal Server Error', 'InternalError')
const reset: Fault = async () => {
  throw new WireEnd('reset')
}

export const faults: Readonly<Record<FaultName, Fault>> = {
  '500': before(internalError),
  '500 after effect': afterEffect(internalError),
  '503 SlowDown': before((exchange, { retryAfterSeconds }) => {
    const line = retryAfterSeconds === undefined ? '' : `Retry-After: ${retryAfterSeconds}\r\n`
    return respondWithError(exchange, '503 Slow Down', 'SlowDown', line)
  }),
  'reset before': reset,
  'reset mid-request-body': (exchange, { afterBytes }) => {
    const framing = framingOfRequest(exchange.head)
    const half = typeof framing === 'number' ? Math.floor(framing / 2) : 1
    return relay(exchange, { requestBytesMax: afterBytes ?? half })
  },
  'reset mid-response-body': async (exchange, { afterBytes }) => {
    await relay(exchange, { responseBytesMax: afterBytes ?? 'half' })
    throw new WireEnd('reset in the middle of the answer')
  },
  'end mid-response-body': async (exchange, { afterBytes }) => {
    await relay(exchange, { responseBytesMax: afterBytes ?? 'half' })
    return 'close'
  },
  'reset after effect': afterEffect(reset),
  'timeout before effect': neverRespond,
  'timeout after effect': afterEffect(neverRespond),
  '200 with error': before(respondWithLateError),
  '200 with error after effect': afterEffect(respondWithLateError),
  'wrong ETag': (exchange) =>
    relay(exchange, { changeHead: (head) => head.replace(/^(etag: *"?)[^"\r]+/im, `$1${'0badf00d'.repeat(4)}`) }),
  'wrong size on HEAD': (exchange) =>
    relay(exchange, {
      changeHead: (head) => head.replace(/^(content-length: *)(\d+)/im, (_, name, size) => name + (Number(size) + 1)),
    }),
  slow: (exchange, { drip }) => relay(exchange, { drip: drip ?? { bytes: 64, pauseMs: 20 } }),
}

async function readBody({ client, head }: RelayedExchange): Promise<void> {
  if (head.header('expect') !== undefined) await writeTo(client.socket, 'HTTP/1.1 100 Continue\r\n\r\n')
  for await (const _ of client.readBody(framingOfRequest(head)));
}

/** Waits until the client closes the connection. */
async function neverRespond({ client }: RelayedExchange): Promise<Ending> {
  while ((await client.next()) !== undefined);
  return 'close'
}

function errorText(code: string): string {
  return writeXml('Error', { Code: code, Message: 'This is a fault that was asked for.', RequestId: 'fault' })
}

async function respondWithError(
  { client, method }: RelayedExchange,
  status: string,
  code: string,
  lines = '',
): Promise<Ending> {
  const text = errorText(code)
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/xml\r\n${lines}Content-Length: ${text.length}\r\n\r\n`
  await writeTo(client.socket, method === 'HEAD' ? head : head + text)
  return 'keep'
}

/** As S3 does it: the head at once, spaces while it works, and the result at the end. */
async function respondWithLateError({ client }: RelayedExchange): Promise<Ending> {
  const text = errorText('InternalError')
  const end = text.indexOf('\n')
  const chunks = [`${text.slice(0, end)}\n`, ' ', ' ', text.slice(end + 1), '']
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nTransfer-Encoding: chunked\r\n\r\n'
  await writeTo(client.socket, head)
  for (const chunk of chunks) await writeTo(client.socket, `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
  return 'keep'
}

/** One request that is relayed. `client` is at the beginning of the body of the request. */
export interface RelayedExchange {
  readonly client: WireReader
  readonly head: Head
  readonly method: string
  readonly upstream: { readonly host: string; readonly port: number }
  /** Called for each connection that is opened. */
  readonly adopt: (socket: Socket) => Socket
}

export interface Drip {
  readonly bytes: number
  readonly pauseMs: number
}

/** How the bytes are changed. */
export interface Changes {
  /** The server gets so many bytes of the body, then a reset; `relay` throws a `WireEnd`. */
  readonly requestBytesMax?: number
  readonly changeHead?: (head: string) => string
  /** The client gets so many bytes of the body of the response. */
  readonly responseBytesMax?: number | 'half'
  /** The whole response is read and not relayed. */
  readonly isSwallowed?: boolean
  readonly drip?: Drip
}

/** Whether the connection of the client can be used for another request. */
export type Ending = 'keep' | 'close'

export async function relay(exchange: RelayedExchange, changes: Changes = {}): Promise<Ending> {
  const { client, head, upstream } = exchange
  const server = new WireReader(exchange.adopt(connect(upstream.port, upstream.host)))
  const isSent = sendRequest(client, server.socket, head, changes.requestBytesMax).then(
    () => true,
    () => false,
  )
  if (changes.requestBytesMax !== undefined) {
    await isSent
    server.socket.resetAndDestroy()
    throw new WireEnd('cut in the middle of the body')
  }
  try {
    const ending = await relayResponse(server, client.socket, exchange.method, changes)
    // A server may respond before it has read the whole body. The rest could not be told from the next request.
    const isWhole = await Promise.race([isSent, server.closed.then(() => false)])
    return isWhole ? ending : 'close'
  } finally {
    server.socket.destroy()
  }
}

async function sendRequest(client: WireReader, server: Socket, head: Head, bytesMax?: number): Promise<void> {
  await writeTo(server, head.text)
  let left = bytesMax ?? Number.POSITIVE_INFINITY
  for await (const bytes of client.readBody(framingOfRequest(head))) {
    await writeTo(server, bytes.subarray(0, left))
    left -= bytes.length
    if (left <= 0) return
  }
}

async function relayResponse(server: WireReader, client: Socket, method: string, changes: Changes): Promise<Ending> {
  for (;;) {
    const bytes = await server.readThrough('\r\n\r\n')
    if (bytes === undefined) throw new WireEnd('the server is gone without an answer')
    const head = parseHead(bytes)
    const framing = framingOfResponse(head, method)
    const isInterim = head.firstLine[1]?.startsWith('1') === true
    const text = isInterim ? head.text : (changes.changeHead?.(head.text) ?? head.text)
    if (changes.isSwallowed !== true) await writeDripping(client, Buffer.from(text, 'latin1'), changes.drip)
    let left = bytesToPass(changes, framing)
    if (left === 0 && changes.responseBytesMax !== undefined) return 'close'
    for await (const piece of server.readBody(framing)) {
      if (changes.isSwallowed !== true) await writeDripping(client, piece.subarray(0, left), changes.drip)
      left -= piece.length
      if (left <= 0 && changes.responseBytesMax !== undefined) return 'close'
    }
    if (isInterim) continue
    return framing === 'to the end' || head.header('connection')?.toLowerCase() === 'close' ? 'close' : 'keep'
  }
}

function bytesToPass({ responseBytesMax }: Changes, framing: number | string): number {
  if (responseBytesMax !== 'half') return responseBytesMax ?? Number.POSITIVE_INFINITY
  return typeof framing === 'number' ? Math.floor(framing / 2) : 1
}

async function writeDripping(client: Socket, bytes: Buffer, drip: Drip | undefined): Promise<void> {
  const step = drip?.bytes ?? Math.max(1, bytes.length)
  for (let at = 0; at < bytes.length; at += step) {
    await writeTo(client, bytes.subarray(at, at + step))
    if (drip !== undefined) await Bun.sleep(drip.pauseMs)
  }
}
