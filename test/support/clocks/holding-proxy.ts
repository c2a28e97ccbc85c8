// A proxy that holds a request in front of its server until the test releases it, even if the client is gone by then.
import { connect, createServer, type Socket } from 'node:net'
import { Gate } from './gates.ts'

export interface HeldRequest {
  /** Resolves when such a request has come. */
  readonly reached: Promise<void>
  /** Lets it go on; resolves when the server has answered it. */
  letGo(): Promise<void>
}

export interface HoldingProxy {
  readonly url: string
  /** The next request whose first line is such. */
  hold(matches: (firstLine: string) => boolean): HeldRequest
  stop(): Promise<void>
}

interface Hold {
  readonly matches: (firstLine: string) => boolean
  readonly gate: Gate
  readonly answered: Gate
}

export async function startHoldingProxy(targetUrl: string): Promise<HoldingProxy> {
  const { port, hostname } = new URL(targetUrl)
  const holds: Hold[] = []
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      socket.on('error', () => undefined)
    }
    passOn(client, upstream, (line) => {
      const at = holds.findIndex(({ matches }) => matches(line))
      return at === -1 ? undefined : holds.splice(at, 1)[0]
    })
  })
  const ownPort = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
  return {
    url: `http://${hostname}:${ownPort}`,
    hold(matches) {
      const held = { matches, gate: new Gate(), answered: new Gate() }
      holds.push(held)
      return {
        reached: held.gate.reached,
        letGo() {
          held.gate.open()
          return held.answered.reached
        },
      }
    },
    async stop() {
      const isClosed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await isClosed
    },
  }
}

/** What the client sends reaches the server in its order, even if the client is gone by then. */
function passOn(client: Socket, upstream: Socket, take: (firstLine: string) => Hold | undefined): void {
  let turn: Promise<unknown> = Promise.resolve()
  let last: Hold | undefined
  client.on('data', (bytes) => {
    const held = take(bytes.toString('latin1').split('\r\n')[0] ?? '')
    if (held !== undefined) {
      last = held
      turn = turn.then(held.gate.pass)
    }
    turn = turn.then(() => upstream.write(bytes))
  })
  upstream.on('data', (bytes) => {
    if (!client.destroyed) client.write(bytes)
    void last?.answered.pass()
  })
  client.on('close', () => {
    turn = turn.then(() => last?.answered.reached).then(() => upstream.end())
  })
  upstream.on('close', () => client.destroy())
}
