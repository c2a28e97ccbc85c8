// A server whose every secret is a canary, and a record of all that it says.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Carrier } from '../../support/api/carriers.ts'
import { until } from '../../support/clocks/until.ts'
import { type BerthProcess, startBerth } from '../../support/server/berth-process.ts'
import { CanarySearch, type Place } from './canary-search.ts'

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** A secret like no other text, with letters in it that each disguise writes in its own way. */
export function newSecret(tail = ''): string {
  const bytes = crypto.getRandomValues(new Uint8Array(40))
  return [...bytes].map((byte) => letters[byte % letters.length]).join('') + tail
}

const privateKeyFile = /\.jwk\.json$/

export class CanaryServer {
  readonly berth: BerthProcess
  readonly apiKey: string
  readonly password: string
  /** Whatever was given out or brought in. */
  readonly canaries = new CanarySearch()
  /** Private parts of signing keys, which stand in their own files alone. */
  readonly privateKeys = new CanarySearch()
  readonly #told: Place[] = []

  private constructor(berth: BerthProcess, apiKey: string, password: string) {
    this.berth = berth
    this.apiKey = apiKey
    this.password = password
    this.canaries.add({ name: "the administrator's key", secret: apiKey })
    this.canaries.add({ name: "the administrator's password", secret: password })
    this.#learnPrivateKeys()
  }

  static async start(settings: Readonly<Record<string, string>>): Promise<CanaryServer> {
    const [apiKey, password] = [newSecret(), newSecret(' ü"\\+%&')]
    const berth = await startBerth({
      settings: {
        BERTH_IDENTITY__ADMIN_API_KEY: apiKey,
        BERTH_IDENTITY__ADMIN_PASSWORD: password,
        BERTH_LOG__LEVEL: 'debug',
        BERTH_AUTH__FAILURE_BURST: '1000000',
        BERTH_LIMITS__KEYS_PER_USER: '100000',
        BERTH_LIMITS__UPLOADS_PER_REPOSITORY: '100000',
        ...settings,
      },
    })
    return new CanaryServer(berth, apiKey, password)
  }

  get url(): string {
    return this.berth.url
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  readonly ask = async (method: string, path: string, request: Omit<RequestInit, 'method'> = {}): Promise<Response> => {
    const answer = await fetch(this.url + path, { redirect: 'manual', ...request, method })
    const text = await answer.text()
    const name = `the answer ${answer.status} to ${method} ${path.split('?')[0]}`
    this.note({ name: `a header of ${name}`, text: [...answer.headers].map((pair) => pair.join(': ')).join('\n') })
    this.note({ name, text: this.#withoutGifts(text) })
    return new Response(text === '' ? null : text, { status: answer.status, headers: answer.headers })
  }

  /** As `ask`, with the secret in this carrier. */
  askBy({ carry }: Carrier, secret: string, method: string, path: string, request: RequestInit = {}) {
    const { headers, query } = carry(secret)
    const address = query === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`
    return this.ask(method, address, { ...request, headers: { ...request.headers, ...headers } })
  }

  note(place: Place): void {
    this.#told.push(place)
  }

  /** A body whose purpose is to hand a secret out may hold that one, which is a canary from now on. */
  #withoutGifts(text: string): string {
    const gifts = text.matchAll(/"(access_token|token|key)":"([^"]{16,})"/g)
    let rest = text
    for (const [, what, secret = ''] of gifts) {
      this.canaries.add({ name: `a ${what} that was handed out`, secret })
      rest = rest.replaceAll(secret, '')
    }
    return rest
  }

  #learnPrivateKeys(): void {
    const folder = join(this.berth.dataDir, 'identity')
    for (const file of readdirSync(folder).filter((name) => privateKeyFile.test(name))) {
      const { privateJwk } = JSON.parse(readFileSync(join(folder, file), 'utf8'))
      this.privateKeys.add({ name: `the private key in ${file}`, secret: privateJwk.d })
      const bytes = Buffer.from(privateJwk.d, 'base64url').toString('latin1')
      this.privateKeys.add({ name: `the bytes of the private key in ${file}`, secret: bytes })
    }
  }

  /** Everywhere that a secret must not be. What gets another way out of the server belongs into this list. */
  places(): readonly Place[] {
    // Rows, journals, blobs, locks.
    const entries = readdirSync(this.berth.dataDir, { recursive: true, withFileTypes: true })
    const files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => ({ name: `the file ${path}`, text: readFileSync(path, 'latin1') }))
    return [...this.#told, { name: 'what the server printed', text: this.berth.output() }, ...files]
  }

  /** All that was found where it must not be. */
  async findLeaks(): Promise<string[]> {
    await this.settle()
    return this.findLeaksIn(this.places())
  }

  /** Waits until everything that was logged so far is printed. */
  async settle(): Promise<void> {
    const id = crypto.randomUUID()
    await this.ask('GET', '/healthz', { headers: { 'x-request-id': id } })
    await until('the last line is printed', () => this.berth.output().includes(id))
  }

  findLeaksIn(places: readonly Place[]): string[] {
    return places.flatMap((place) => [
      ...this.canaries.find(place),
      ...(privateKeyFile.test(place.name) ? [] : this.privateKeys.find(place)),
    ])
  }

  stop(): Promise<number> {
    return this.berth.stop()
  }
}
