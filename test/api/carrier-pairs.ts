// Two carriers in one request: which of them decides.

import { identity } from '../support/api/api-server.ts'
import { type Carrier, carriers, placesInOrder } from '../support/api/carriers.ts'
import { askRaw } from '../support/clients/raw-socket.ts'

export interface Pair {
  readonly first: Carrier
  readonly second: Carrier
}

/** Each carrier with each, itself too, in both orders. */
export const pairs: readonly Pair[] = carriers.flatMap((first) => carriers.map((second) => ({ first, second })))

/** What each of the two brings. */
export interface Brought {
  readonly first: string
  readonly second: string
}

/** decisions.md 5: the first present decides, no falling through from a bad one; a repeated carrier is 401. */
export function deciderOf({ first, second }: Pair): 'first' | 'second' | 'neither' {
  const [one, other] = [first, second].map(({ place }) => placesInOrder.indexOf(place))
  if (one === undefined || other === undefined || one === other) return 'neither'
  return one < other ? 'first' : 'second'
}

/** The caller that the server recognizes, or the status of its refusal. */
export async function callerOf(port: number, { first, second }: Pair, brought: Brought): Promise<string> {
  const carried = [first.carry(brought.first), second.carry(brought.second)]
  const query = carried.flatMap((one) => one.query ?? []).join('&')
  const isCookie = (name: string) => name === 'cookie'
  const lines = carried.flatMap(({ headers = {} }) => Object.entries(headers))
  // A browser writes all cookies into one line.
  const cookies = lines.filter(([name]) => isCookie(name)).map(([, value]) => value)
  const others = lines.filter(([name]) => !isCookie(name)).map(([name, value]) => `${name}: ${value}`)
  const { status, body } = await askRaw(port, `GET ${identity}/me?${query} HTTP/1.1`, [
    ...others,
    ...(cookies.length === 0 ? [] : [`cookie: ${cookies.join('; ')}`]),
  ])
  return status === 200 ? JSON.parse(body).user : String(status)
}
