// A service that signs tokens and publishes its keys (JWKS), in the state that a test sets.
import type { Server } from 'bun'
import { exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose'
import { noon } from './remote-identity.ts'

const badAnswers = {
  '500': () => new Response('', { status: 500 }),
  html: () => new Response('<html></html>'),
  'no keys': () => Response.json({}),
  'keys that are none': () => Response.json({ keys: ['key 1'] }),
  redirect: () => new Response(null, { status: 302, headers: { location: '/elsewhere.json' } }),
}

export type TokenIssuerState = 'good' | keyof typeof badAnswers

interface ServiceKey {
  readonly kid: string
  readonly algorithm: string
  readonly privateKey: CryptoKey | Uint8Array
  readonly publicJwk: Readonly<Record<string, unknown>>
}

export const issuer = 'https://tokens.example.com'
export const audience = 'registry'

export class TokenIssuer {
  state: TokenIssuerState = 'good'
  /** How often the keys were asked for. */
  calls = 0
  /** Answers wait for this. */
  hold: Promise<void> | undefined
  /** Those that are published. */
  keys: ServiceKey[] = []
  readonly #server: Server<undefined>

  private constructor() {
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: ({ url }) => this.#answer(new URL(url).pathname),
    })
  }

  static async start(): Promise<TokenIssuer> {
    const service = new TokenIssuer()
    await service.addKey()
    return service
  }

  get jwksUrl(): string {
    return `http://127.0.0.1:${this.#server.port}/keys.json`
  }

  async addKey(algorithm = 'ES256', kid = `key ${this.keys.length + 1}`): Promise<ServiceKey> {
    const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true })
    const publicJwk = { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' }
    const key = { kid, algorithm, privateKey, publicJwk }
    this.keys = [...this.keys, key]
    return key
  }

  /** A good token of alice, but for what is given otherwise. */
  sign(
    claims: Readonly<Record<string, unknown>> = {},
    { key = this.keys[0], header = {} }: { key?: ServiceKey | undefined; header?: Record<string, unknown> } = {},
  ): Promise<string> {
    if (key === undefined) throw new Error('the service has no key')
    const now = Math.floor(noon / 1000)
    const all = {
      iss: issuer,
      aud: audience,
      sub: 'alice',
      account: 'acme',
      roles: ['writer'],
      iat: now,
      exp: now + 3600,
    }
    const headers = { alg: key.algorithm, kid: key.kid, ...header } as JWTHeaderParameters
    return new SignJWT({ ...all, ...claims }).setProtectedHeader(headers).sign(key.privateKey)
  }

  async stop(): Promise<void> {
    await this.#server.stop(true)
  }

  async #answer(path: string): Promise<Response> {
    if (path !== '/keys.json') return this.#publish()
    this.calls += 1
    await this.hold
    return this.state === 'good' ? this.#publish() : badAnswers[this.state]()
  }

  #publish(): Response {
    return Response.json({ keys: this.keys.map(({ publicJwk }) => publicJwk) })
  }
}
