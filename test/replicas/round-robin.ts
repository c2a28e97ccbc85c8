// The least of balancers: each connection to the next server that takes it. Bytes pass as they are.
import { connect, createServer, type Socket } from 'node:net'
import { listen } from '../support/basics/child-server.ts'

export interface RoundRobin {
  readonly url: string
  stop(): Promise<void>
}

export async function startRoundRobin(urls: readonly string[]): Promise<RoundRobin> {
  const ports = urls.map((url) => Number(new URL(url).port))
  const sockets = new Set<Socket>()
  let turn = 0
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.setNoDelay(true)
    return socket.on('close', () => sockets.delete(socket))
  }
  const server = createServer({ pauseOnConnect: true }, (client) => {
    turn += 1
    const first = turn
    keep(client)
    // Errors of a client that is gone before it was led anywhere.
    client.on('error', () => undefined)
    const lead = (attempt: number): void => {
      if (attempt === ports.length) {
        client.resetAndDestroy()
        return
      }
      const upstream = connect(ports[(first + attempt) % ports.length] ?? 0, '127.0.0.1')
      const next = () => lead(attempt + 1)
      upstream.once('error', next)
      upstream.once('connect', () => {
        upstream.off('error', next)
        join(client, keep(upstream))
      })
    }
    lead(0)
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      const isClosed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await isClosed
    },
  }
}

/** What ends one of them in disorder ends the other so. */
function join(client: Socket, upstream: Socket): void {
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.on('error', () => other.resetAndDestroy())
    one.on('close', (hadError) => (hadError ? other.resetAndDestroy() : other.end()))
    one.pipe(other)
  }
  client.resume()
}
