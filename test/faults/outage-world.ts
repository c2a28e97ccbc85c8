// A server over HTTP whose identity service is a stub, and whose clock a test moves.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Log } from '../../src/lib/log.ts'
import type { CachingIdentity } from '../../src/ports/identity.ts'
import { manifestOfBlobs } from '../support/clients/registry-client.ts'
import { IdentityStub } from '../support/identity/identity-stub.ts'
import { assembleServer } from '../support/server/moved-server.ts'
import { basic } from '../support/server/test-server.ts'

/** All carriers of spec.md: what each adds to a request. */
export const carriers = {
  'Authorization: Bearer': (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } }),
  'Basic apikey': (secret: string) => ({ headers: { authorization: basic('apikey', secret) } }),
  'Basic bearer': (secret: string) => ({ headers: { authorization: basic('bearer', secret) } }),
  'X-API-KEY': (secret: string) => ({ headers: { 'x-api-key': secret } }),
  'the query': (secret: string) => ({ query: `?apiKey=${secret}` }),
  'the cookie': (secret: string) => ({ headers: { cookie: `svc-auth=${secret}`, 'sec-fetch-site': 'same-origin' } }),
} as const

export type Carrier = keyof typeof carriers

/** The header in which the identity service must get what came by this carrier. */
export function headerAfter(carrier: Carrier): 'x-api-key' | 'authorization' {
  return ['Basic apikey', 'X-API-KEY', 'the query'].includes(carrier) ? 'x-api-key' : 'authorization'
}

export interface Person {
  readonly secret: string
  /** The address that the person comes from, where 127.0.0.1 is a trusted proxy. */
  readonly from?: string
  readonly account: string
}

export interface WorldOptions {
  /** How long the service may take, in real time. */
  readonly timeoutMs?: number
  readonly settings?: Readonly<Record<string, string>>
  /** Another identity around or in place of the right one, for controls. */
  readonly wrap?: (identity: CachingIdentity) => CachingIdentity
}

export interface OutageReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

const secretMark = 'hush-hush'

export class OutageWorld {
  readonly stub: IdentityStub
  /** All that the log was told, errors with their causes and all. */
  readonly logged: string[] = []
  now = Date.UTC(2030, 0, 1)
  readonly #dataDir = mkdtempSync(join(tmpdir(), 'berth-outage-'))
  readonly #server: ReturnType<typeof assembleServer>
  port = 0
  #people = 0

  private constructor(stub: IdentityStub, { timeoutMs = 3_000, settings = {}, wrap = (one) => one }: WorldOptions) {
    this.stub = stub
    const own = {
      BERTH_AUTH__URL: stub.url,
      BERTH_AUTH__TIMEOUT: `${timeoutMs}ms`,
      BERTH_MANIFESTS__MISSING_CONTENT: 'allow',
      BERTH_LIMITS__UPLOADS_PER_REPOSITORY: '100000',
    }
    const log: Log = {
      write: (...line) => void this.logged.push(Bun.inspect(line, { depth: 20 })),
      flush: () => undefined,
      close: async () => undefined,
    }
    const change = ({ identity }: { identity: CachingIdentity }) => ({ identity: wrap(identity) })
    this.#server = assembleServer(this.#dataDir, { settings: { ...own, ...settings }, change, log }, () => this.now)
  }

  static async open(options: WorldOptions = {}): Promise<OutageWorld> {
    const world = new OutageWorld(await IdentityStub.start(), options)
    world.port = (await world.#server).port
    return world
  }

  /** Requests that came and are not answered yet. */
  async pending(): Promise<number> {
    return (await this.#server).http.pending
  }

  /** Adds a person whom the service knows, with all rights in the account. */
  addPerson(account = 'acme', rest: Readonly<Record<string, unknown>> = {}): Person {
    const { secret } = this.makeUpSecret()
    this.stub.people.set(secret, { roles: ['admin'], user: `person-${this.#people}`, account, ...rest })
    return { secret, account }
  }

  /** A secret that the service does not know. */
  makeUpSecret(): Person {
    this.#people += 1
    return { secret: `${secretMark}-${this.#people}`, account: 'nobody' }
  }

  async ask(
    { secret, from }: Person,
    carrier: Carrier,
    method: string,
    path: string,
    body?: Uint8Array,
  ): Promise<OutageReply> {
    const { headers = {}, query = '' }: { headers?: Record<string, string>; query?: string } = carriers[carrier](secret)
    const type = body === undefined ? {} : { 'content-type': 'application/vnd.oci.image.manifest.v1+json' }
    const url = `http://127.0.0.1:${this.port}${path}${query}`
    const init = {
      method,
      headers: { ...headers, ...type, ...(from === undefined ? {} : { 'x-forwarded-for': from }) },
      ...(body === undefined ? {} : { body: new Uint8Array(body) }),
    }
    const response = await fetch(url, init)
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  /** As `ask`, of a service that is well: however late it is, it is asked until it has answered, on its good days. */
  async askWell(
    person: Person,
    carrier: Carrier,
    method: string,
    path: string,
    body?: Uint8Array,
  ): Promise<OutageReply> {
    for (let tries = 0; tries < 20; tries += 1) {
      const reply = await this.ask(person, carrier, method, path, body)
      if (reply.status < 400) return reply
      // Longer than the circuit breaker stays open.
      this.now += 3_000
    }
    throw new Error(`${method} ${path} finds no answer, though the identity service is well`)
  }

  async pushTag(person: Person, tag: string): Promise<void> {
    const encode = (text: string) => new TextEncoder().encode(text)
    const manifest = manifestOfBlobs(encode('{}'), [encode('layer')], 'app')
    await this.askWell(person, 'X-API-KEY', 'PUT', `/v2/app/manifests/${tag}`, manifest)
  }

  async isDisabled(account: string): Promise<boolean> {
    const { unchanged } = await this.#server
    return (await unchanged.metadata.accounts.find(account))?.state === 'disabled'
  }

  /** Of what was given away: lines of the log that hold a credential. */
  findLeaks(): string[] {
    return this.logged.filter((line) => line.includes(secretMark))
  }

  async close(): Promise<void> {
    await (await this.#server).stop()
    await this.stub.stop()
    rmSync(this.#dataDir, { recursive: true, force: true })
  }
}
