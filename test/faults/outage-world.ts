// A server over HTTP whose identity service is a stub, and whose clock a test moves.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Log } from '../../src/lib/log.ts'
import { ociManifest } from '../../src/oci/media-types.ts'
import { type Carried, type Carrier, carriers } from '../support/api/carriers.ts'
import { manifestOfBlobs } from '../support/clients/registry-client.ts'
import { IdentityStub } from '../support/identity/identity-stub.ts'
import { assembleServer } from '../support/server/moved-server.ts'

/** The carriers whose credential goes to the identity service as it is. Names go to its login: api/docker-login.test.ts. */
export const outageCarriers = carriers.filter(({ isNamed }) => isNamed === undefined)

export interface Person {
  readonly secret: string
  readonly account: string
}

export interface WorldOptions {
  /** How long the service may take, in real time. */
  readonly timeoutMs?: number
  readonly settings?: Readonly<Record<string, string>>
}

export interface OutageRequest {
  /** How the credential is brought, if not as `X-API-KEY`. */
  readonly carry?: Carrier['carry']
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array<ArrayBuffer>
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
  readonly clock = { now: Date.UTC(2030, 0, 1) }
  readonly #dataDir = mkdtempSync(join(tmpdir(), 'berth-outage-'))
  readonly #server: ReturnType<typeof assembleServer>
  port = 0
  #people = 0

  private constructor(stub: IdentityStub, { timeoutMs = 3_000, settings = {} }: WorldOptions) {
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
    this.#server = assembleServer(this.#dataDir, { settings: { ...own, ...settings }, log }, () => this.clock.now)
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

  async ask({ secret }: Person, method: string, path: string, request: OutageRequest = {}): Promise<OutageReply> {
    const { carry = (key) => ({ headers: { 'x-api-key': key } }), body } = request
    const { headers, query }: Carried = carry(secret)
    const response = await fetch(`http://127.0.0.1:${this.port}${path}${query === undefined ? '' : `?${query}`}`, {
      method,
      headers: { ...headers, ...request.headers },
      ...(body === undefined ? {} : { body }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  /** As `ask`, of a service that is well: however late it is, it is asked until it has answered, on its good days. */
  async askWell(...asked: Parameters<OutageWorld['ask']>): Promise<OutageReply> {
    for (let tries = 0; tries < 20; tries += 1) {
      const reply = await this.ask(...asked)
      if (reply.status < 400) return reply
      // Longer than the circuit breaker stays open.
      this.clock.now += 3_000
    }
    throw new Error(`${asked[1]} ${asked[2]} finds no answer, though the identity service is well`)
  }

  async pushTag(person: Person, tag: string): Promise<void> {
    const encode = (text: string) => new TextEncoder().encode(text)
    const body = new Uint8Array(manifestOfBlobs(encode('{}'), [encode('layer')], 'app'))
    await this.askWell(person, 'PUT', `/v2/app/manifests/${tag}`, { headers: { 'content-type': ociManifest }, body })
  }

  async isDisabled(account: string): Promise<boolean> {
    const { unchanged } = await this.#server
    return (await unchanged.metadata.accounts.find(account))?.state === 'disabled'
  }

  /** Of what was given away: lines of the log that hold a credential. */
  findLeaks(): string[] {
    return this.logged.filter((line) => line.includes(secretMark))
  }

  async stop(): Promise<void> {
    await (await this.#server).stop()
    await this.stub.stop()
    rmSync(this.#dataDir, { recursive: true, force: true })
  }
}
