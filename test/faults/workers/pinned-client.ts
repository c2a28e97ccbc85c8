// Clients whose connection stays at one worker, so that a test chooses which worker gets a request.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { until } from '../../support/clocks/until.ts'
import type { BerthProcess } from '../../support/server/berth-process.ts'
import { workersOf } from '../../support/server/workers.ts'

export interface Reply {
  readonly status: number
  readonly location: string
  readonly range: string
  readonly text: string
}

interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  /** Sends only the beginning of the body; the request never ends. */
  readonly onlyFirstBytes?: number
}

export class PinnedClient {
  readonly #berth: BerthProcess
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  #socket: Socket | undefined

  private constructor(berth: BerthProcess) {
    this.#berth = berth
  }

  /** One client for each worker. */
  static async forEachWorker(berth: BerthProcess): Promise<Map<number, PinnedClient>> {
    const found = new Map<number, PinnedClient>()
    await until('each worker has a client', async () => {
      const client = new PinnedClient(berth)
      // A worker that is just being killed resets the connections that it has not accepted.
      await client.ask('GET', '/healthz').catch(() => undefined)
      const worker = client.findWorker()
      if (worker !== undefined && !found.has(worker)) found.set(worker, client)
      else client.close()
      return workersOf(berth.pid).length > 1 && workersOf(berth.pid).every((pid) => found.has(pid))
    })
    return found
  }

  /** The worker whose descriptor is the other end of the connection. */
  findWorker(): number | undefined {
    const own = hex(this.#socket?.localPort ?? 0)
    const port = hex(Number(new URL(this.#berth.url).port))
    const line = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((text) => text.trim().split(/\s+/))
      .find(([, local, remote]) => local?.endsWith(`:${port}`) && remote?.endsWith(`:${own}`))
    const link = `socket:[${line?.[9]}]`
    return workersOf(this.#berth.pid).find((pid) => linksOf(pid).includes(link))
  }

  ask(method: string, path: string, { headers = {}, body, onlyFirstBytes }: Sent = {}): Promise<Reply> {
    const bytes = Buffer.from(body ?? '')
    return new Promise((resolve, reject) => {
      const sent = request(
        this.#berth.url + path,
        {
          method,
          agent: this.#agent,
          headers: {
            'x-api-key': this.#berth.apiKey,
            ...(body === undefined ? {} : { 'content-length': String(bytes.length) }),
            ...headers,
          },
        },
        (answer) => {
          let text = ''
          answer.setEncoding('utf8')
          answer.on('data', (chunk: string) => {
            text += chunk
          })
          answer.on('error', reject)
          answer.on('end', () => {
            const { location = '', range = '' } = answer.headers
            resolve({ status: answer.statusCode ?? 0, location, range: String(range), text })
          })
        },
      )
      sent.on('socket', (socket: Socket) => {
        this.#socket = socket
      })
      sent.on('error', reject)
      if (onlyFirstBytes === undefined) sent.end(bytes)
      else sent.write(bytes.subarray(0, onlyFirstBytes))
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

function hex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0')
}

function linksOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).map((name) => {
    try {
      return readlinkSync(`${folder}/${name}`)
    } catch {
      // Closed meanwhile.
      return ''
    }
  })
}
