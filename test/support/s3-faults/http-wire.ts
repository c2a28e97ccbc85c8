// HTTP/1.1 as bytes on sockets: where one message ends and the next begins, and nothing else about it.
import type { Socket } from 'node:net'
import { parseHead as parseText } from '../clients/raw-socket.ts'

const heldBytesMax = 1_024 ** 2

/** How far a body goes: so many bytes, in chunks, or to the end of the connection. */
export type Framing = number | 'chunked' | 'to the end'

/** A connection is gone, or shall be, before its message is whole. */
export class WireEnd extends Error {}

export class WireReader {
  readonly socket: Socket
  /** Settles as soon as nothing more can come. */
  readonly closed: Promise<void>
  #chunks: Buffer[] = []
  #heldBytes = 0
  #isOver = false
  #wake = (): void => undefined

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk)
      this.#heldBytes += chunk.length
      if (this.#heldBytes > heldBytesMax) socket.pause()
      this.#wake()
    })
    this.closed = new Promise((resolve) => {
      const end = () => {
        this.#isOver = true
        this.#wake()
        resolve()
      }
      for (const event of ['end', 'error', 'close']) socket.on(event, end)
    })
  }

  /** The next bytes as they came; undefined when nothing more will come. */
  async next(): Promise<Buffer | undefined> {
    while (this.#chunks.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const chunk = this.#chunks.shift()
    this.#heldBytes -= chunk?.length ?? 0
    if (this.#heldBytes <= heldBytesMax) this.socket.resume()
    return chunk
  }

  #giveBack(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#chunks.unshift(bytes)
    this.#heldBytes += bytes.length
  }

  /** Up to and with the mark; undefined when the connection ends before. */
  async readThrough(mark: string): Promise<Buffer | undefined> {
    let held = Buffer.alloc(0)
    for (;;) {
      const chunk = await this.next()
      if (chunk === undefined) return undefined
      held = Buffer.concat([held, chunk])
      const at = held.indexOf(mark)
      if (at === -1) continue
      this.#giveBack(held.subarray(at + mark.length))
      return held.subarray(0, at + mark.length)
    }
  }

  async *#readBytes(count: number): AsyncGenerator<Buffer> {
    let missing = count
    while (missing > 0) {
      const chunk = await this.next()
      if (chunk === undefined) throw new WireEnd(`the connection ended ${missing} bytes too early`)
      const part = chunk.subarray(0, missing)
      this.#giveBack(chunk.subarray(missing))
      missing -= part.length
      yield part
    }
  }

  /** The body as it stands on the wire, the lines between chunks included. */
  async *readBody(framing: Framing): AsyncGenerator<Buffer> {
    if (typeof framing === 'number') yield* this.#readBytes(framing)
    if (framing === 'to the end')
      for (let chunk = await this.next(); chunk !== undefined; chunk = await this.next()) yield chunk
    if (framing === 'chunked') yield* this.#readChunks()
  }

  async *#readChunks(): AsyncGenerator<Buffer> {
    for (;;) {
      const line = await this.#readLine()
      yield line
      const size = Number.parseInt(line.toString('latin1'), 16)
      if (size > 0) yield* this.#readBytes(size + 2)
      else break
    }
    // Trailers, and the empty line that ends them.
    for (;;) {
      const line = await this.#readLine()
      yield line
      if (line.length === 2) return
    }
  }

  async #readLine(): Promise<Buffer> {
    const line = await this.readThrough('\r\n')
    if (line === undefined) throw new WireEnd('the connection ended between chunks')
    return line
  }
}

export interface Head {
  /** As it came, with the empty line at its end. */
  readonly text: string
  readonly firstLine: readonly string[]
  header(name: string): string | undefined
}

export function parseHead(bytes: Buffer): Head {
  const text = bytes.toString('latin1')
  const { firstLine, headers } = parseText(text)
  return { text, firstLine: firstLine.split(' '), header: (name) => headers.get(name) }
}

export function framingOfRequest(head: Head): Framing {
  if (head.header('transfer-encoding') !== undefined) return 'chunked'
  return Number(head.header('content-length') ?? 0)
}

export function framingOfResponse(head: Head, method: string): Framing {
  const status = Number(head.firstLine[1])
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return 0
  if (head.header('transfer-encoding') !== undefined) return 'chunked'
  const length = head.header('content-length')
  return length === undefined ? 'to the end' : Number(length)
}

/** Done when the bytes are on their way; rejects if the peer no longer takes them. */
export function writeTo(socket: Socket, bytes: Uint8Array | string): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => reject(new WireEnd('the peer no longer takes the bytes'))
    if (socket.destroyed || !socket.writable) return end()
    socket.once('close', end)
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes, (error) => {
      socket.off('close', end)
      if (error) end()
      else resolve()
    })
  })
}
