// The client for machines without `wrk`. It uses raw keep-alive sockets, and sends a request after the previous answer.
export interface Load {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly seconds: number
  readonly connections: number
  readonly method?: 'GET' | 'HEAD'
}

interface Connection {
  /** The received bytes of the answer, until its head is complete. */
  head: string
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
    data: { head: '', missing: undefined, isHead },
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

/** True when an answer is complete. */
function takeChunk(connection: Connection, chunk: Uint8Array, progress: Progress): boolean {
  if (connection.missing === undefined) {
    connection.head += Buffer.from(chunk).toString('latin1')
    const end = connection.head.indexOf('\r\n\r\n')
    if (end < 0) return false
    const length = /\r\ncontent-length: *(\d+)/i.exec(connection.head.slice(0, end))?.[1]
    if (!connection.head.startsWith('HTTP/1.1 200 ') || length === undefined)
      progress.failed ??= connection.head.slice(0, end)
    const bodyBytes = connection.isHead ? 0 : Number(length ?? 0)
    connection.missing = bodyBytes - (connection.head.length - end - 4)
  } else {
    connection.missing -= chunk.byteLength
  }
  if (connection.missing > 0) return false
  connection.head = ''
  connection.missing = undefined
  progress.answered++
  return true
}

function formatRequest(load: Load): Uint8Array {
  const { host, pathname } = new URL(load.url)
  const headers = Object.entries({ Host: host, ...load.headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${load.method ?? 'GET'} ${pathname} HTTP/1.1\r\n${headers.join('')}\r\n`)
}
