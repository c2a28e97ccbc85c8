// Stands between a client and PostgreSQL, reads the frames of the protocol, and breaks the connection where it is told.
import { createServer, type Server, type Socket, connect as tcpConnect } from 'node:net'
import { listen } from '../basics/child-server.ts'

/** Before: the server does not get the statement. After: it has executed and committed it, without an answer. */
export type Moment = 'before' | 'after'

const startupHeader = 0
const typedHeader = 1

/** The messages of one direction, whole, however the bytes were cut on their way. */
class Frames {
  #rest: Buffer = Buffer.alloc(0)
  /** The first message of a client has no type. */
  #header: number

  constructor(header: number) {
    this.#header = header
  }

  *take(chunk: Buffer): Generator<Buffer> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= this.#header + 4) {
      const length = this.#header + this.#rest.readUInt32BE(this.#header)
      if (this.#rest.length < length) return
      const frame = this.#rest.subarray(0, length)
      this.#rest = this.#rest.subarray(length)
      this.#header = typedHeader
      yield frame
    }
  }
}

function typeOf(frame: Buffer): string {
  return String.fromCharCode(frame[0] ?? 0)
}

/** The zero-terminated texts at the begin of a message. */
function textsOf(frame: Buffer): string[] {
  return frame.subarray(5).toString('latin1').split('\0')
}

/** What the connections share: where they lead, and the one cut that is planned. */
interface Plan {
  port: number
  readonly statements: string[]
  cut: { readonly at: number; readonly moment: Moment } | undefined
  cuts: number
}

class Line {
  readonly #client: Socket
  readonly #server: Socket
  readonly #plan: Plan
  readonly #asked = new Frames(startupHeader)
  readonly #answered = new Frames(typedHeader)
  /** Of the statements that this connection has prepared: name -> text. */
  readonly #prepared = new Map<string, string>()
  #bound = ''
  #isLastAnswer = false

  constructor(client: Socket, plan: Plan, onEnd: () => void) {
    this.#client = client
    this.#plan = plan
    this.#server = tcpConnect(plan.port, '127.0.0.1')
    for (const socket of [this.#client, this.#server]) {
      socket.setNoDelay(true)
      socket.on('error', () => this.end())
      socket.on('close', () => {
        this.end()
        onEnd()
      })
    }
    this.#client.on('data', (chunk: Buffer) => this.#pass(this.#asked, chunk, (frame) => this.#ask(frame)))
    this.#server.on('data', (chunk: Buffer) => this.#pass(this.#answered, chunk, (frame) => this.#answer(frame)))
  }

  end(): void {
    this.each('destroy')
  }

  each(act: 'destroy' | 'pause' | 'resume'): void {
    for (const socket of [this.#client, this.#server]) socket[act]()
  }

  #pass(frames: Frames, chunk: Buffer, each: (frame: Buffer) => void): void {
    for (const frame of frames.take(chunk)) {
      if (this.#client.destroyed) return
      each(frame)
    }
  }

  #ask(frame: Buffer): void {
    const type = typeOf(frame)
    const [first = '', second = ''] = textsOf(frame)
    if (type === 'P') this.#prepared.set(first, second)
    if (type === 'B') this.#bound = this.#prepared.get(second) ?? '?'
    if (type === 'Q' || type === 'E') {
      const { statements, cut } = this.#plan
      statements.push(type === 'Q' ? first : this.#bound)
      if (cut?.at === statements.length) {
        this.#plan.cut = undefined
        if (cut.moment === 'before') {
          this.#cut()
          return
        }
        this.#isLastAnswer = true
      }
    }
    this.#server.write(frame)
  }

  #answer(frame: Buffer): void {
    // Ready for the next one: whatever the statement did is done, and committed where it stood alone.
    if (!this.#isLastAnswer) this.#client.write(frame)
    else if (typeOf(frame) === 'Z') this.#cut()
  }

  #cut(): void {
    this.#plan.cuts += 1
    this.end()
  }
}

export class PostgresProxy {
  readonly #plan: Plan = { port: 0, statements: [], cut: undefined, cuts: 0 }
  readonly #lines = new Set<Line>()
  readonly #server: Server
  #port = 0
  #refuses = false

  private constructor(port: number) {
    this.#plan.port = port
    this.#server = createServer((client) => {
      if (this.#refuses) {
        client.destroy()
        return
      }
      const line: Line = new Line(client, this.#plan, () => this.#lines.delete(line))
      this.#lines.add(line)
    })
  }

  static async start(port: number): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(port)
    proxy.#port = await listen(proxy.#server)
    return proxy
  }

  /** The same database, by way of this proxy. */
  through(url: string): string {
    return url.replace(/:\d+\//, `:${this.#port}/`)
  }

  /** Statements that came by since the last plan, in their order, as texts. */
  get statements(): readonly string[] {
    return this.#plan.statements
  }

  get cuts(): number {
    return this.#plan.cuts
  }

  get connections(): number {
    return this.#lines.size
  }

  /** Counts from one, anew; without a number nothing is cut. */
  cutAt(at: number | undefined, moment: Moment = 'before'): void {
    this.#plan.statements.length = 0
    this.#plan.cut = at === undefined ? undefined : { at, moment }
  }

  /** New connections are closed at once from now on. */
  refuse(refuses: boolean): void {
    this.#refuses = refuses
    if (refuses) this.cutAll()
  }

  /** New connections go there from now on; the existing ones are cut. */
  leadTo(port: number): void {
    this.#plan.port = port
    this.cutAll()
  }

  cutAll(): void {
    for (const line of [...this.#lines]) line.end()
  }

  /** No byte passes, and no connection is closed, until `letGo`. */
  hold(): void {
    for (const line of this.#lines) line.each('pause')
  }

  letGo(): void {
    for (const line of this.#lines) line.each('resume')
  }

  async stop(): Promise<void> {
    this.cutAll()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
