// An identity service on loopback, in the state that a test sets.
import type { Server } from 'bun'

/** A number is the status of every answer. `flapping`: fails, answers, fails, answers. `down`: the port is closed. */
export type StubState = 'good' | 'down' | 'flapping' | `${number}` | keyof typeof answers

export interface StubCall {
  readonly path: string
  /** The header that carried the credential, and what else came beside it. */
  readonly carrier: 'x-api-key' | 'authorization' | 'both' | 'none'
  readonly secret: string
}

const mePath = '/api/2021-02-21/me'
const tokenPath = '/api/2021-02-21/token/auth'
const hugeBytes = 1024 * 1024

export class IdentityStub {
  /** Secret -> what the service says of its owner. */
  readonly people = new Map<string, Readonly<Record<string, unknown>>>()
  /** Secret -> the status with which it is turned away while all others are answered, as services do that limit each caller. */
  readonly turnedAway = new Map<string, number>()
  /** The questions at `/me`. */
  readonly calls: StubCall[] = []
  /** `name:password` -> the token for it; what else is tried at the login is refused. */
  readonly logins = new Map<string, string>()
  /** The logins that were tried, as `name:password`. */
  readonly triedLogins: string[] = []
  /** The request that would have received the credential of a client that follows redirects. */
  readonly strayCalls: StubCall[] = []
  /** Answers wait for this. */
  hold: Promise<void> | undefined
  #state: StubState = 'good'
  #server: Server<undefined> | undefined
  #port = 0
  #turn = 0

  static async start(): Promise<IdentityStub> {
    const stub = new IdentityStub()
    await stub.#open()
    return stub
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  async set(state: StubState): Promise<void> {
    this.#state = state
    this.#turn = 0
    if (state === 'down') await this.stop()
    else await this.#open()
  }

  async stop(): Promise<void> {
    await this.#server?.stop(true)
    this.#server = undefined
  }

  async #open(): Promise<void> {
    if (this.#server !== undefined) return
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: this.#port,
      idleTimeout: 0,
      fetch: (request) => this.#answer(request),
    })
    this.#port = this.#server.port ?? 0
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    const call = readCall(request, pathname)
    if (pathname === tokenPath && request.method === 'POST')
      return this.#logIn((await request.json()) as Readonly<Record<string, string>>)
    if (pathname !== mePath) {
      this.strayCalls.push(call)
      return this.#know(call)
    }
    this.calls.push(call)
    this.#turn += 1
    await this.hold
    const turnedAway = this.turnedAway.get(call.secret)
    if (turnedAway !== undefined) return new Response(`not you, ${call.secret}`, { status: turnedAway })
    if (this.#state === 'flapping') return this.#turn % 2 === 1 ? new Response('', { status: 503 }) : this.#know(call)
    return this.#state === 'good' ? this.#know(call) : answerIn(this.#state, call, this.#know(call))
  }

  #logIn({ username, password }: Readonly<Record<string, string>>): Response {
    const login = `${username}:${password}`
    this.triedLogins.push(login)
    const token = this.logins.get(login)
    if (/^\d+$/.test(this.#state)) return new Response('', { status: Number(this.#state) })
    if (token === undefined) return Response.json({ msg: 'who?' }, { status: 401 })
    return Response.json({ access_token: token, scope: 'acme', token_type: 'Bearer', expires_in: 86_400 })
  }

  #know({ secret }: StubCall): Response {
    const person = this.people.get(secret)
    return person === undefined ? Response.json({ msg: 'who?' }, { status: 401 }) : Response.json(person)
  }
}

function readCall({ headers }: Request, path: string): StubCall {
  const [apiKey, authorization] = [headers.get('x-api-key'), headers.get('authorization')]
  if (apiKey !== null && authorization !== null) return { path, carrier: 'both', secret: '' }
  if (apiKey !== null) return { path, carrier: 'x-api-key', secret: apiKey }
  if (authorization?.startsWith('Bearer ')) {
    return { path, carrier: 'authorization', secret: authorization.slice('Bearer '.length) }
  }
  return { path, carrier: 'none', secret: '' }
}

type BadAnswer = (secret: string, good: Response) => Response | Promise<Response>

/** Answers that tell nothing show what they were asked, as error pages do: none of it may get into our log. */
const answers = {
  slow: () => new Promise<Response>(() => undefined),
  'slow body': () =>
    new Response(new ReadableStream({ start: (sink) => sink.enqueue(new TextEncoder().encode('{"roles":')) })),
  html: (secret) => new Response(`<html>please log in, ${secret}</html>`, { headers: { 'content-type': 'text/html' } }),
  truncated: async (_, good) => new Response((await good.text()).slice(0, -2)),
  'no roles': (secret) => Response.json({ user: 'alice', account: 'acme', secret }),
  'odd bytes': () => new Response(Buffer.from('{"roles":["admin"],"account":"acm\xe9"}', 'latin1')),
  'a list': (secret) => Response.json([{ roles: ['admin'], secret }]),
  huge: (secret) => Response.json({ roles: ['admin'], secret, padding: 'x'.repeat(hugeBytes) }),
  redirect: (secret) => new Response(`over there, ${secret}`, { status: 307, headers: { location: '/elsewhere' } }),
} satisfies Record<string, BadAnswer>

function answerIn(state: StubState, { secret }: StubCall, good: Response): Response | Promise<Response> {
  if (state in answers) return (answers as Record<string, BadAnswer>)[state]?.(secret, good) ?? good
  return new Response(`no luck with ${secret}`, { status: Number(state) })
}
