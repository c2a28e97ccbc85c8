// A request whose body the test sends piece by piece, or never ends, over a socket of its own.
import { connect, type Socket } from 'node:net'
import { parseAnswer, type RawAnswer } from './raw-socket.ts'
import { authorization, type Target } from './registry-client.ts'

export type BodyForm = 'content-length' | 'chunked'

export interface SlowRequest {
  /** Sends a piece of the body and waits until the kernel has taken it. */
  send(bytes: Uint8Array): Promise<void>
  /** Ends a chunked body. */
  end(): Promise<void>
  /** The answer when all of it has arrived, or undefined if the connection ended without one. Closes the connection. */
  answer(): Promise<RawAnswer | undefined>
  /** The status of the answer, or 0 when the connection ended without one. */
  status(): Promise<number>
  /** Breaks the connection in the middle of whatever is going on. */
  vanish(): void
}

export async function beginRequest(
  target: Target,
  method: string,
  path: string,
  form: BodyForm,
  announcedBytes: number,
  contentType = 'application/octet-stream',
): Promise<SlowRequest> {
  const { socket, received, ended } = await openSocket(target)
  const answer = async () => {
    while (wholeAnswerIn(received()) === undefined && !ended()) await Bun.sleep(10)
    socket.destroy()
    return wholeAnswerIn(received())
  }
  const length = form === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${announcedBytes}`
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1', `Authorization: ${authorization}`, length]
  lines.push(`Content-Type: ${contentType}`)
  await write(socket, `${lines.join('\r\n')}\r\n\r\n`)
  return {
    async send(bytes) {
      if (form === 'chunked') await write(socket, `${bytes.length.toString(16)}\r\n`)
      await write(socket, bytes)
      if (form === 'chunked') await write(socket, '\r\n')
    },
    end: () => write(socket, '0\r\n\r\n'),
    answer,
    status: async () => (await answer())?.status ?? 0,
    vanish: () => void socket.destroy(),
  }
}

/** A connection that stays open between requests without bodies. */
export async function openKeptConnection(
  target: Target,
): Promise<{ get(path: string): Promise<number>; close(): void }> {
  const { socket, received, ended } = await openSocket(target)
  return {
    async get(path) {
      const before = received().length
      await write(socket, `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
      while (wholeAnswerIn(received().slice(before)) === undefined && !ended()) await Bun.sleep(10)
      return wholeAnswerIn(received().slice(before))?.status ?? 0
    },
    close: () => void socket.destroy(),
  }
}

/** The client's own end of a connection. */
export interface LocalEnd {
  readonly localAddress: string
  readonly localPort: number
}

/** A GET of which nothing is read. */
export async function beginPull(target: Target, path: string, from?: LocalEnd): Promise<Socket> {
  const { socket } = await openSocket(target, { isPaused: true, from })
  socket.pause()
  await write(socket, `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization}\r\n\r\n`)
  return socket
}

/** A download that the test reads as far as it wants to. */
export async function beginDownload(target: Target, path: string, from?: LocalEnd) {
  const socket = await beginPull(target, path, from)
  return {
    /** Reads on to the end, the answer's head included, as fast as it can or at a pace; gives what came. */
    async readToEnd({ bytesPerSecond = Infinity } = {}): Promise<Buffer> {
      const chunks: Buffer[] = []
      let size = 0
      let allowance = 0
      socket.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        size += chunk.length
        if (size > allowance) socket.pause()
      })
      const expected = () => {
        const head = Buffer.concat(chunks.slice(0, 2)).toString('latin1')
        const length = /^content-length: (\d+)/im.exec(head)?.[1]
        return length === undefined ? Infinity : Number(length) + head.indexOf('\r\n\r\n') + 4
      }
      while (!socket.closed && size < expected()) {
        allowance += bytesPerSecond / 100
        if (size <= allowance) socket.resume()
        await Bun.sleep(10)
      }
      socket.destroy()
      return Buffer.concat(chunks)
    },
    close: () => void socket.destroy(),
  }
}

function wholeAnswerIn(text: string): RawAnswer | undefined {
  if (!text.includes('\r\n\r\n')) return undefined
  const answer = parseAnswer(text)
  return answer.body.length >= Number(answer.headers.get('content-length') ?? 0) ? answer : undefined
}

interface SocketOptions {
  readonly isPaused?: boolean
  readonly from?: LocalEnd | undefined
}

async function openSocket(target: Target, { isPaused = false, from }: SocketOptions = {}) {
  const socket = await new Promise<Socket>((resolve, reject) => {
    const end = { port: Number(new URL(target.url).port), host: '127.0.0.1', ...from }
    const made = connect(end, () => resolve(made))
    made.once('error', reject)
  })
  let text = ''
  let isEnded = false
  // Some connections are broken on purpose; what the kernel says of that is of no interest.
  socket.on('error', () => undefined)
  socket.on('close', () => {
    isEnded = true
  })
  if (!isPaused) {
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
  }
  return { socket, received: () => text, ended: () => isEnded }
}

function write(socket: Socket, content: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    socket.write(content, () => resolve())
  })
}
