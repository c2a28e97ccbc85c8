// A client at an address that tries credentials, and the answers that it gets.

import type { MovedServer } from '../server/moved-server.ts'
import { identity } from './api-server.ts'
import { type Carrier, carriers } from './carriers.ts'

let count = 0

/** A text that was not tried before. */
export const newGuess = () => `guess_number_${++count}`

/** An address that was not used before. */
export const newAddress = () => `198.18.${Math.floor(++count / 250) % 250}.${(count % 250) + 1}`

export interface Told {
  readonly status: number
  readonly retryAfter: string | null
  readonly challenge: string | null
  readonly text: string
}

/** Asks through a proxy on this machine, as the address in `forwardedFor`. */
export class Guesser {
  readonly #server: MovedServer
  readonly forwardedFor: string

  constructor(server: MovedServer, forwardedFor: string = newAddress()) {
    this.#server = server
    this.forwardedFor = forwardedFor
  }

  async ask(
    method: string,
    path: string,
    request: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<Told> {
    const headers = { 'x-forwarded-for': this.forwardedFor, ...request.headers }
    const answer = await this.#server.ask(method, path, { ...request, headers })
    return {
      status: answer.status,
      retryAfter: answer.headers.get('retry-after'),
      challenge: answer.headers.get('www-authenticate'),
      text: await answer.text(),
    }
  }

  /** Brings a credential; in X-API-KEY unless another carrier is named. */
  bring(secret: string, path = '/v2/', method = 'GET', carrier: Carrier = xApiKey): Promise<Told> {
    const { headers = {}, query } = carrier.carry(secret)
    return this.ask(method, query === undefined ? path : `${path}?${query}`, { headers: { ...headers } })
  }

  logIn(username: string, password: string): Promise<Told> {
    const headers = { 'content-type': 'application/json' }
    return this.ask('POST', `${identity}/token/auth`, { headers, body: JSON.stringify({ username, password }) })
  }

  /** So many new guesses; gives what came, without repetitions. */
  async guess(times: number, path = '/v2/', method = 'GET', carrier: Carrier = xApiKey): Promise<number[]> {
    const statuses = new Set<number>()
    for (let tries = 0; tries < times; tries += 1) {
      statuses.add((await this.bring(newGuess(), path, method, carrier)).status)
    }
    return [...statuses]
  }
}

const xApiKey = carriers[3] as Carrier
