// What the balancer of the tests does with requests, and with replicas that are gone, leaving or broken. The replicas are
// scripted, and count what they hear: a request that arrives twice would be seen.
import { afterAll, describe, expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import { until } from '../support/clocks/until.ts'
import { nginx, startNginx } from '../support/replicas/nginx-server.ts'

type Manner = 'answer' | '503' | 'reset after all' | 'hold'

/** Answers each request with its own name, but for the manner that it is told. */
class Replica {
  readonly heard: string[] = []
  manner: Manner = 'answer'
  readonly #sockets = new Set<Socket>()
  #server: Server = createServer()
  readonly name: string
  port = 0

  constructor(name: string) {
    this.name = name
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async start(): Promise<void> {
    this.#server = createServer((socket) => this.#serve(socket))
    await new Promise<void>((resolve) => this.#server.listen(this.port, '127.0.0.1', resolve))
    const address: AddressInfo | string | null = this.#server.address()
    if (typeof address === 'object' && address !== null) this.port = address.port
  }

  async stop(): Promise<void> {
    const isClosed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await isClosed
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => undefined)
    let held = ''
    socket.on('data', (bytes) => {
      held += bytes.toString('latin1')
      const end = held.indexOf('\r\n\r\n')
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(held)?.[1] ?? 0)
      if (end === -1 || held.length < end + 4 + length) return
      this.heard.push(held)
      held = ''
      if (this.manner === 'reset after all') socket.resetAndDestroy()
      if (this.manner === '503')
        socket.write('HTTP/1.1 503 Service Unavailable\r\nRetry-After: 9\r\nContent-Length: 4\r\n\r\nbusy')
      const head = `HTTP/1.1 200 OK\r\nContent-Length: ${this.name.length}\r\n\r\n`
      if (this.manner === 'answer') socket.write(head + this.name)
      if (this.manner === 'hold') socket.write(head.replace(/: \d+/, ': 6'))
      if (this.manner === 'hold') this.release = () => socket.write('a late')
    })
  }

  release = (): void => undefined
}

const a = new Replica('a')
const b = new Replica('b')
const balancer = useRunning(async () => {
  await a.start()
  await b.start()
  return startNginx([a.url, b.url])
}, nginx)

const ask = (path: string, init: RequestInit = {}) => fetch(balancer.url + path, { keepalive: false, ...init })
const say = async (path: string, init: RequestInit = {}) => (await ask(path, init)).text()

/** How many such requests the replicas received in total. */
const timesHeard = (path: string) => [...a.heard, ...b.heard].filter((text) => text.includes(` ${path} `)).length

async function both(manner: Manner, other: Manner, body: () => Promise<void>): Promise<void> {
  a.manner = manner
  b.manner = other
  try {
    await body()
  } finally {
    a.manner = 'answer'
    b.manner = 'answer'
  }
}

afterAll(async () => {
  if (nginx.isMet) await Promise.all([a.stop(), b.stop()])
})

describe('an nginx in front of two replicas', () => {
  testNeeding(nginx, 'sends each request to the next, and says whom the client asked', async () => {
    const names: string[] = []
    for (let turn = 0; turn < 6; turn += 1) names.push(await say('/turns', { headers: { host: 'registry.test:81' } }))
    expect(names.join('')).toMatch(/^(?:ababab|bababa)$/)
    const heard = a.heard.at(-1)?.toLowerCase() ?? ''
    expect(heard).toContain('\r\nhost: registry.test:81\r\n')
    expect(heard).toContain('\r\nx-forwarded-for: 127.0.0.1\r\n')
    expect(heard).toContain('\r\nx-forwarded-proto: http\r\n')
  })

  testNeeding(nginx, 'passes bodies of any size', async () => {
    const body = 'x'.repeat(3_000_000)
    expect((await ask('/large', { method: 'PUT', body })).status).toBe(200)
    expect([...a.heard, ...b.heard].find((text) => text.includes(' /large '))).toEndWith(body)
  })

  testNeeding(nginx, 'passes what there is of an answer before there is all of it', async () => {
    await both('hold', 'hold', async () => {
      const answer = await ask('/held')
      a.release()
      b.release()
      expect([answer.status, await answer.text()]).toEqual([200, 'a late'])
    })
  })

  testNeeding(nginx, 'asks another where one is gone, for bodies too, because none has been sent', async () => {
    await a.stop()
    const seen: string[] = []
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
      for (let turn = 0; turn < 4; turn += 1) {
        const body = method === 'PUT' || method === 'PATCH' ? { body: 'bytes' } : {}
        seen.push(`${method} ${(await ask('/gone', { method, ...body })).status}`)
      }
    await a.start()
    expect(seen.filter((text) => !text.endsWith(' 200'))).toEqual([])
    expect(timesHeard('/gone')).toBe(24)
  })

  testNeeding(nginx, 'asks another where one says 503', async () => {
    await both('503', 'answer', async () => {
      for (let turn = 0; turn < 4; turn += 1) expect(await say('/leaving')).toBe('b')
    })
  })

  testNeeding(nginx, 'lets the 503 of all come through as it is, and goes on at once when that is over', async () => {
    await both('503', '503', async () => {
      for (let turn = 0; turn < 6; turn += 1) {
        const answer = await ask('/busy')
        expect([answer.status, answer.headers.get('retry-after'), await answer.text()]).toEqual([503, '9', 'busy'])
      }
    })
    expect((await ask('/busy')).status).toBe(200)
  })

  testNeeding(nginx, 'repeats a request without a body where its connection broke', async () => {
    await both('reset after all', 'answer', async () => {
      for (let turn = 0; turn < 2; turn += 1) expect(await say('/broken')).toBe('b')
    })
    expect(timesHeard('/broken')).toBe(3)
  })

  const small = 'bytes'
  const large = 'x'.repeat(200_000)
  const once = [
    ['POST', undefined, 'a POST without a body'],
    ['POST', small, 'a POST'],
    ['PATCH', small, 'a PATCH'],
    ['PATCH', large, 'a large PATCH'],
    ['PUT', large, 'a large PUT'],
  ] as const
  for (const [index, [method, body, words]] of once.entries())
    testNeeding(nginx, `never repeats ${words} that has been sent`, async () => {
      const path = `/once-${index}`
      const send = async () => (await ask(path, { method, ...(body === undefined ? {} : { body }) })).status
      await both('reset after all', 'reset after all', async () => expect(await send()).toBe(502))
      expect(timesHeard(path)).toBe(1)
      await both('503', '503', async () => expect(await send()).toBe(503))
      expect(timesHeard(path)).toBe(2)
    })

  testNeeding(nginx, 'repeats a PUT that it has whole: what bears to be said twice', async () => {
    await both('reset after all', 'reset after all', async () => {
      expect((await ask('/twice', { method: 'PUT', body: small })).status).toBe(502)
    })
    expect(timesHeard('/twice')).toBe(2)
  })

  testNeeding(nginx, 'forgets a replica when it is told to, and lets what runs there end', async () => {
    await both('hold', 'hold', async () => {
      const running = [await ask('/running'), await ask('/running')]
      await balancer.reload([b.url])
      b.manner = 'answer'
      for (let turn = 0; turn < 4; turn += 1) expect(await say('/after')).toBe('b')
      a.release()
      b.release()
      expect(await Promise.all(running.map((answer) => answer.text()))).toEqual(['a late', 'a late'])
    })
    await balancer.reload([a.url, b.url])
    expect(new Set([await say('/again'), await say('/again')])).toEqual(new Set(['a', 'b']))
  })

  testNeeding(nginx, 'leaves nothing behind', async () => {
    const other = await startNginx([a.url])
    expect(await (await fetch(other.url)).text()).toBe('a')
    await other.stop()
    expect(await fetch(other.url).catch((error) => error.code)).toBe('ECONNREFUSED')
    await until('its folder is gone', () => !existsSync(other.folder))
  })
})
