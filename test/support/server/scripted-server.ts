// A server that handles each request and its connection as the test says, to test clients against any answer.
import { createServer, type Socket } from 'node:net'
import { listen } from '../basics/child-server.ts'
import { parseHead } from '../clients/raw-socket.ts'

export interface ScriptedRequest {
  readonly method: string
  /** Path and query as they came. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Which connection it came on, from 1. */
  readonly connection: number
}

/** What a script may do with the connection of a request. */
export class ScriptedAnswer {
  readonly #socket: Socket

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** A whole answer. */
  send(status: number, body: string | Uint8Array = '', headers: Readonly<Record<string, string>> = {}): void {
    this.begin(status, { 'content-length': String(Buffer.byteLength(body)), ...headers })
    this.#socket.write(body)
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    this.#socket.write(`HTTP/1.1 ${status} Said\r\n${lines.join('')}\r\n`)
  }

  /** Resolves as the kernel has taken the bytes: a reader that stops is felt. */
  write(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.#socket.off('close', end)
        resolve()
      }
      this.#socket.once('close', end)
      this.#socket.write(bytes, end)
    })
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  close(): void {
    this.#socket.end()
  }

  reset(): void {
    this.#socket.resetAndDestroy()
  }
}

export type Script = (request: ScriptedRequest, answer: ScriptedAnswer, nth: number) => void | Promise<void>

export interface ScriptedServer {
  readonly url: string
  readonly requests: readonly ScriptedRequest[]
  follow(script: Script): void
  stop(): Promise<void>
}

/** Until it gets a script, it does not answer. */
export async function startScriptedServer(): Promise<ScriptedServer> {
  const requests: ScriptedRequest[] = []
  const sockets = new Set<Socket>()
  let script: Script = () => undefined
  let made = 0
  let nth = 0
  const server = createServer((socket) => {
    made += 1
    const connection = made
    sockets.add(socket)
    // A client that goes away is what many of these tests are about.
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    let held = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      const request = takeRequest(held, connection)
      if (request === undefined) return
      held = Buffer.alloc(0)
      requests.push(request)
      nth += 1
      void script(request, new ScriptedAnswer(socket), nth)
    })
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    follow: (next) => {
      script = next
      nth = 0
      requests.length = 0
    },
    stop: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** One whole request, or undefined while it still comes. Clients here send no second one before they are answered. */
function takeRequest(held: Buffer, connection: number): ScriptedRequest | undefined {
  if (!held.includes('\r\n\r\n')) return undefined
  const { firstLine, lines, bodyStart } = parseHead(held.toString('latin1'))
  const [method = '', target = ''] = firstLine.split(' ')
  const headers = Object.fromEntries(lines)
  const body = held.subarray(bodyStart)
  return body.length < Number(headers['content-length'] ?? 0)
    ? undefined
    : { method, target, headers, body, connection }
}
