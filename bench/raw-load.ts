// A load generator for HEAD, and for machines without `wrk`. It speaks HTTP/1.1 over keep-alive connections, and sends a
// request after the previous answer. It checks the status of every answer.
export interface Load {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly seconds: number
  readonly connections: number
  readonly method?: 'GET' | 'HEAD'
}

interface Connection {
  /** The received bytes of the answer, until its head is complete. Usually they arrive at once. */
  head: Buffer | undefined
  /** How many bytes of the body are missing. Undefined while the head is incomplete. */
  missing: number | undefined
  readonly isHead: boolean
}

interface Progress {
  answered: number
  failed: string | undefined
  readonly deadline: number
}

export async function runRawLoad(load: Load): Promise<number> {
  const request = formatRequest(load)
  const { hostname, port } = new URL(load.url)
  const progress: Progress = { answered: 0, failed: undefined, deadline: performance.now() + load.seconds * 1000 }
  const connections = Array.from({ length: load.connections }, () =>
    runConnection({ hostname, port: Number(port), isHead: load.method === 'HEAD' }, request, progress),
  )
  await Promise.all(connections)
  if (progress.failed !== undefined) throw new Error(`${load.url}: ${progress.failed}`)
  return progress.answered
}

interface Target {
  readonly hostname: string
  readonly port: number
  readonly isHead: boolean
}

function runConnection({ hostname, port, isHead }: Target, request: Uint8Array, progress: Progress): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  Bun.connect<Connection>({
    hostname,
    port,
    data: { head: undefined, missing: undefined, isHead },
    socket: {
      open: (socket) => {
        socket.write(request)
      },
      data: (socket, chunk) => {
        if (!takeChunk(socket.data, chunk, progress)) return
        if (progress.failed === undefined && performance.now() < progress.deadline) socket.write(request)
        else socket.end()
      },
      close: () => {
        if (performance.now() < progress.deadline) progress.failed ??= 'the server closed a connection'
        resolve()
      },
      error: (_socket, error) => reject(error),
    },
  }).catch(reject)
  return promise
}

const endOfHead = '\r\n\r\n'
const goodStatus = Buffer.from('HTTP/1.1 200 ')

/** True when an answer is complete. */
function takeChunk(connection: Connection, chunk: Buffer, progress: Progress): boolean {
  if (connection.missing === undefined) {
    const head = connection.head === undefined ? chunk : Buffer.concat([connection.head, chunk])
    const end = head.indexOf(endOfHead)
    if (end < 0) {
      connection.head = head
      return false
    }
    connection.head = undefined
    connection.missing = readBodyLength(connection, head, end, progress) - (head.byteLength - end - endOfHead.length)
  } else {
    connection.missing -= chunk.byteLength
  }
  if (connection.missing > 0) return false
  if (connection.missing < 0) progress.failed ??= 'the server sent more bytes than it announced'
  connection.missing = undefined
  progress.answered++
  return true
}

function readBodyLength({ isHead }: Connection, head: Buffer, end: number, progress: Progress): number {
  const isGood = head.compare(goodStatus, 0, goodStatus.byteLength, 0, goodStatus.byteLength) === 0
  if (isGood && isHead) return 0
  const text = head.toString('latin1', 0, end)
  const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1]
  if (!isGood || length === undefined) progress.failed ??= text
  return Number(length ?? 0)
}

function formatRequest(load: Load): Uint8Array {
  const { host, pathname, search } = new URL(load.url)
  const headers = Object.entries({ Host: host, ...load.headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${load.method ?? 'GET'} ${pathname}${search} HTTP/1.1\r\n${headers.join('')}\r\n`)
}
