// decisions.md 5: Authorization, then X-API-KEY, then the query, then the cookie; the first that is present decides.
import { afterAll, describe, expect, test } from 'bun:test'
import { addUser, type Carrier, logIn, makeKey, makeSecrets } from '../support/api/carriers.ts'
import { startFront } from '../support/server/front.ts'
import { startMoved } from '../support/server/moved-server.ts'
import { callerOf, deciderOf, pairs } from './carrier-pairs.ts'

const server = await startMoved({ settings: { BERTH_AUTH__FAILURE_BURST: '1000000' } })
afterAll(() => server.stop())

const secrets = await makeSecrets(server)
const password = 'a password of somebody else'
await addUser(server, 'other', password)
const others = {
  apiKey: await makeKey(server, 'key', 'other'),
  token: await logIn(server, 'other', password),
  password,
}
const of = (state: 'good' | 'bad' | 'expired' | 'of another user', { kind }: Carrier) =>
  state === 'of another user' ? others[kind] : secrets[kind][state]
/** Whom each is taken for alone. */
const callers = { good: 'admin', bad: '401', expired: '401', 'of another user': 'other' } as const

const cases = [
  ['good', 'bad'],
  ['bad', 'good'],
  ['good', 'expired'],
  ['expired', 'good'],
  ['good', 'of another user'],
  ['bad', 'bad'],
] as const
const all = cases.flatMap(([first, second]) =>
  pairs.map((pair) => ({
    title: `${pair.first.name} and ${pair.second.name}: ${first}, ${second}`,
    pair,
    bring: { first: of(first, pair.first), second: of(second, pair.second) },
    alone: { first: callers[first], second: callers[second] },
  })),
)
const wantedOf = ({ pair, alone }: (typeof all)[number]) => {
  const decider = deciderOf(pair)
  if (decider === 'neither') return '401'
  // A name and the credential of another user do not fit.
  return alone[decider] === 'other' && pair[decider].isNamed ? '401' : alone[decider]
}

test('all pairs of carriers are here', () => {
  expect(pairs.length).toBe(64)
  console.log(`carrier precedence: ${all.length} cells`)
})

test.each(all.map((one) => [one.title, one] as const))('%s', async (_, one) => {
  expect(await callerOf(server.port, one.pair, one.bring)).toBe(wantedOf(one))
})

describe('the table finds out', () => {
  async function faultsBehind(rewrite: (request: Request, status: number) => Request | undefined): Promise<string[]> {
    const front = startFront(server.url, rewrite)
    const faults: string[] = []
    for (const one of all) {
      const caller = await callerOf(front.port, one.pair, one.bring)
      if (caller !== wantedOf(one)) faults.push(one.title)
    }
    front.stop()
    return faults
  }

  test('a server that falls through from a bad Authorization to the next carrier', async () => {
    const faults = await faultsBehind((request, status) => {
      if (status !== 401) return undefined
      const next = new Request(request)
      next.headers.delete('authorization')
      return next
    })

    expect(faults).toContain('Authorization: Bearer and X-API-KEY: bad, good')
    expect(faults).toContain('cookie svc-auth and Authorization: Basic apikey: good, expired')
    // Five carriers of Authorization, three others, two orders, two kinds of what is wrong; and a key of another user.
    expect(faults.length).toBe(5 * 3 * 2 * 2 + 2 * 3)
  })

  test('a server that prefers X-API-KEY to Authorization', async () => {
    const faults = await faultsBehind((request, status) => {
      if (status !== 0 || !request.headers.has('x-api-key')) return undefined
      const next = new Request(request)
      next.headers.delete('authorization')
      return next
    })

    expect(faults).toContain('Authorization: Bearer and X-API-KEY: good, of another user')
  })
})
