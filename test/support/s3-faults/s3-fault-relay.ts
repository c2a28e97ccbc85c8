// How the fault proxy passes one request on and its answer back, and what it can do otherwise.
import { connect, type Socket } from 'node:net'
import { framingOfRequest, framingOfResponse, type Head, parseHead, WireEnd, WireReader, writeTo } from './http-wire.ts'

/** One request on its way. `client` stands at the beginning of the request's body. */
export interface Passage {
  readonly client: WireReader
  readonly head: Head
  readonly method: string
  readonly upstream: { readonly host: string; readonly port: number }
  /** Told of each connection that is opened. */
  readonly adopt: (socket: Socket) => Socket
}

export interface Drip {
  readonly bytes: number
  readonly pauseMs: number
}

/** What happens to the bytes on their way; nothing, where nothing is said. */
export interface Twist {
  /** So much of the request's body goes on; then the server sees a reset, and we see a `WireEnd`. */
  readonly requestBytesMax?: number
  readonly changeHead?: (head: string) => string
  /** So much of the answer's body goes back, and no more. */
  readonly responseBytesMax?: number | 'half'
  /** The whole answer is taken, and nobody hears of it. */
  readonly isSwallowed?: boolean
  readonly drip?: Drip
}

/** What the client's connection is good for afterwards. */
export type Ending = 'keep' | 'close'

export async function relay(passage: Passage, twist: Twist = {}): Promise<Ending> {
  const { client, head, upstream } = passage
  const server = new WireReader(passage.adopt(connect(upstream.port, upstream.host)))
  const isSent = sendRequest(client, server.socket, head, twist.requestBytesMax).then(
    () => true,
    () => false,
  )
  if (twist.requestBytesMax !== undefined) {
    await isSent
    server.socket.resetAndDestroy()
    throw new WireEnd('cut in the middle of the body')
  }
  try {
    const ending = await passAnswer(server, client.socket, passage.method, twist)
    // A server may answer before it has read all: what it leaves on our side cannot be told from the next request.
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

async function passAnswer(server: WireReader, client: Socket, method: string, twist: Twist): Promise<Ending> {
  for (;;) {
    const bytes = await server.readThrough('\r\n\r\n')
    if (bytes === undefined) throw new WireEnd('the server is gone without an answer')
    const head = parseHead(bytes)
    const framing = framingOfResponse(head, method)
    const isInterim = head.firstLine[1]?.startsWith('1') === true
    const text = isInterim ? head.text : (twist.changeHead?.(head.text) ?? head.text)
    if (twist.isSwallowed !== true) await writeDripping(client, Buffer.from(text, 'latin1'), twist.drip)
    let left = bytesToPass(twist, framing)
    if (left === 0 && twist.responseBytesMax !== undefined) return 'close'
    for await (const piece of server.readBody(framing)) {
      if (twist.isSwallowed !== true) await writeDripping(client, piece.subarray(0, left), twist.drip)
      left -= piece.length
      if (left <= 0 && twist.responseBytesMax !== undefined) return 'close'
    }
    if (isInterim) continue
    return framing === 'to the end' || head.header('connection')?.toLowerCase() === 'close' ? 'close' : 'keep'
  }
}

function bytesToPass({ responseBytesMax }: Twist, framing: number | string): number {
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
