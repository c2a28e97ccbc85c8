// HTTP by hand, for what no client would send: repeated header lines, odd paths, bodies that end early.
import { connect, type Socket } from 'node:net'

export interface RawReply {
  readonly status: number
  /** Line by line, names in lower case. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
  readonly text: string
}

export interface RawConnection {
  send(text: string): void
  /** All that comes until the server ends the connection, or until the first answer is whole. */
  answer(): Promise<RawReply>
  close(): void
}

export async function openRaw(port: number): Promise<RawConnection> {
  const socket = await connected(port)
  let received = ''
  let isEnded = false
  let wake = (): void => undefined
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    received += chunk
    wake()
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    isEnded = true
    wake()
  })
  return {
    send: (text) => void socket.write(text, 'latin1'),
    close: () => void socket.destroy(),
    async answer() {
      while (!isEnded && !isWhole(received)) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      socket.destroy()
      return parseReply(received)
    },
  }
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.once('error', reject)
  })
}

/** Sends one request and waits for its answer. */
export async function askRaw(port: number, requestLine: string, headers: readonly string[] = []): Promise<RawReply> {
  const connection = await openRaw(port)
  connection.send([requestLine, 'Host: 127.0.0.1', ...headers, 'Connection: close', '', ''].join('\r\n'))
  return connection.answer()
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return false
  const length = /^content-length: *(\d+)/im.exec(text.slice(0, end))
  return length !== null && text.length >= end + 4 + Number(length[1])
}

function parseReply(text: string): RawReply {
  const end = text.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = text.slice(0, end === -1 ? undefined : end).split('\r\n')
  return {
    status: Number(statusLine.split(' ')[1] ?? 0),
    headers: lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    }),
    body: end === -1 ? '' : text.slice(end + 4),
    text,
  }
}

/** The values of all lines of this name. */
export function valuesOf(reply: RawReply, name: string): readonly string[] {
  return reply.headers.filter(([own]) => own === name).map(([, value]) => value)
}
