// A proxy in front of any S3 server. It relays requests byte by byte, and breaks the requests that a rule selects.
import { createServer, type Socket } from 'node:net'
import { listen } from '../basics/child-server.ts'
import { Gate } from '../clocks/gates.ts'
import { parseS3Target, type S3Operation, type S3Target } from '../s3/s3-operation.ts'
import { framingOfRequest, type Head, parseHead, WireEnd, WireReader } from './http-wire.ts'
import { type Ending, type FaultDetails, type FaultName, faultPlaces, faults, relay } from './s3-faults.ts'

export interface SeenRequest extends S3Target {
  readonly method: string
  /** Path and query as they came. */
  readonly target: string
}

export interface FaultRule extends FaultDetails {
  readonly fault: FaultName
  /** Any operation, if undefined. */
  readonly operation?: S3Operation | readonly S3Operation[]
  readonly matches?: (request: SeenRequest) => boolean
  /** Which of the selected requests, counted from 1; all of them, if undefined. */
  readonly occurrence?: number | readonly number[]
}

export interface S3FaultProxy {
  readonly url: string
  /** If several rules select a request, the first one breaks it. */
  inject(rule: FaultRule): { hits(): number }
  /** Holds the next request whose first line is such, even if the client is gone by then. */
  hold(matches: (firstLine: string) => boolean): HeldRequest
  /** Forgets the rules and the requests. Requests that wait for a response continue to wait. */
  clear(): void
  /** The operations of all requests in order, also of failed ones; undefined for an unknown operation. */
  seen(): readonly (S3Operation | undefined)[]
  stop(): Promise<void>
}

export interface HeldRequest {
  /** Resolves when such a request has come. */
  readonly reached: Promise<void>
  /** Lets it go on; resolves when the server has answered it. */
  letGo(): Promise<void>
}

interface Hold {
  readonly matches: (firstLine: string) => boolean
  readonly gate: Gate
  readonly answered: PromiseWithResolvers<void>
}

interface ActiveRule extends FaultRule {
  matched: number
  hits: number
}

interface ProxyState {
  readonly upstream: { readonly host: string; readonly port: number }
  readonly sockets: Set<Socket>
  readonly holds: Hold[]
  rules: ActiveRule[]
  seen: (S3Operation | undefined)[]
}

export async function startS3FaultProxy(targetUrl: string): Promise<S3FaultProxy> {
  const { hostname, port } = new URL(targetUrl)
  const upstream = { host: hostname === 'localhost' ? '127.0.0.1' : hostname, port: Number(port) }
  const state: ProxyState = { upstream, sockets: new Set(), holds: [], rules: [], seen: [] }
  const server = createServer((socket) => {
    adopt(state, socket)
    void serve(state, new WireReader(socket))
  })
  const ownPort = await listen(server)
  return {
    url: `http://${hostname}:${ownPort}`,
    inject(rule) {
      const active: ActiveRule = { ...rule, matched: 0, hits: 0 }
      state.rules.push(active)
      return { hits: () => active.hits }
    },
    hold(matches) {
      const hold = { matches, gate: new Gate(), answered: Promise.withResolvers<void>() }
      state.holds.push(hold)
      return {
        reached: hold.gate.reached,
        letGo() {
          hold.gate.open()
          return hold.answered.promise
        },
      }
    },
    clear() {
      state.rules = []
      state.seen = []
    },
    seen: () => [...state.seen],
    async stop() {
      const isClosed = new Promise((resolve) => server.close(resolve))
      for (const socket of state.sockets) socket.destroy()
      await isClosed
    },
  }
}

function adopt(state: ProxyState, socket: Socket): Socket {
  state.sockets.add(socket)
  socket.setNoDelay(true)
  socket.on('close', () => state.sockets.delete(socket))
  return socket
}

async function serve(state: ProxyState, client: WireReader): Promise<void> {
  try {
    for (;;) {
      const bytes = await client.readThrough('\r\n\r\n')
      if (bytes === undefined) break
      const head = parseHead(bytes)
      const ending = await answer(state, client, head)
      if (ending === 'close' || head.header('connection')?.toLowerCase() === 'close') break
    }
    client.socket.end()
  } catch (error) {
    if (!(error instanceof WireEnd)) console.error('the fault proxy failed', error)
    // If one of the two connections breaks, the other is reset too.
    client.socket.resetAndDestroy()
  }
}

async function answer(state: ProxyState, client: WireReader, head: Head): Promise<Ending> {
  const request = describe(head)
  state.seen.push(request.operation)
  const rule = takeRule(state.rules, request, head)
  const adoptNext = (socket: Socket) => adopt(state, socket)
  const exchange = { client, head, method: request.method, upstream: state.upstream, adopt: adoptNext }
  const at = state.holds.findIndex(({ matches }) => matches(head.text.slice(0, head.text.indexOf('\r'))))
  const [hold] = at === -1 ? [] : state.holds.splice(at, 1)
  await hold?.gate.pass()
  try {
    return await (rule === undefined ? relay(exchange) : faults[rule.fault](exchange, rule))
  } finally {
    hold?.answered.resolve()
  }
}

function describe(head: Head): SeenRequest {
  const [method = '', target = ''] = head.firstLine
  try {
    return { ...parseS3Target(method, head.header('host') ?? '', target), method, target }
  } catch {
    return { operation: undefined, bucket: '', name: '', query: new Map(), method, target }
  }
}

/** The first rule that is due. Each rule that selects the request counts it, even if another rule breaks it. */
function takeRule(rules: readonly ActiveRule[], request: SeenRequest, head: Head): ActiveRule | undefined {
  const due = rules.filter((rule) => {
    if (!isAbout(rule, request, head)) return false
    rule.matched += 1
    return rule.occurrence === undefined || [rule.occurrence].flat().includes(rule.matched)
  })
  const [first] = due
  if (first !== undefined) first.hits += 1
  return first
}

function isAbout(rule: FaultRule, request: SeenRequest, head: Head): boolean {
  const { operation } = request
  const isNamed = (names: S3Operation | readonly S3Operation[] | undefined) =>
    names === undefined || [names].flat().some((name) => name === operation)
  const hasMiddle = rule.fault !== 'reset mid-request-body' || framingOfRequest(head) !== 0
  return isNamed(rule.operation) && isNamed(faultPlaces[rule.fault]) && hasMiddle && (rule.matches?.(request) ?? true)
}
