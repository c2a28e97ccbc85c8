// decisions.md 5: Authorization, then X-API-KEY, then the query, then the cookie; the first that is present decides.
import { afterAll, describe, expect, test } from 'bun:test'
import { type Brought, callerOf, deciderOf, type Pair, pairs } from '../support/api/carrier-pairs.ts'
import { addUser, type Carrier, logIn, makeKey, makeSecrets } from '../support/api/carriers.ts'
import { startFront } from '../support/server/front.ts'
import { startMoved } from '../support/server/moved-server.ts'

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
const good = ({ kind }: Carrier) => secrets[kind].good
const bad = ({ kind }: Carrier) => secrets[kind].bad
const expired = ({ kind }: Carrier) => secrets[kind].expired
const ofOther = ({ kind }: Carrier) => others[kind]

/** What is brought, and whom each of the two would be taken for alone. */
type Case = readonly [string, (pair: Pair) => Brought, Readonly<Record<'first' | 'second', string>>]
const cases: readonly Case[] = [
  ['good, bad', (pair) => ({ first: good(pair.first), second: bad(pair.second) }), { first: 'admin', second: '401' }],
  ['bad, good', (pair) => ({ first: bad(pair.first), second: good(pair.second) }), { first: '401', second: 'admin' }],
  [
    'good, expired',
    (pair) => ({ first: good(pair.first), second: expired(pair.second) }),
    { first: 'admin', second: '401' },
  ],
  [
    'expired, good',
    (pair) => ({ first: expired(pair.first), second: good(pair.second) }),
    { first: '401', second: 'admin' },
  ],
  [
    'good, good of another user',
    (pair) => ({ first: good(pair.first), second: ofOther(pair.second) }),
    { first: 'admin', second: 'other' },
  ],
  ['bad, bad', (pair) => ({ first: bad(pair.first), second: bad(pair.second) }), { first: '401', second: '401' }],
]
const all = cases.flatMap(([title, bring, alone]) =>
  pairs.map((pair) => ({ title: `${pair.first.name} and ${pair.second.name}: ${title}`, pair, bring, alone })),
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
  expect(await callerOf(server.port, one.pair, one.bring(one.pair))).toBe(wantedOf(one))
})

describe('the table finds out', () => {
  async function faultsBehind(rewrite: (request: Request, status: number) => Request | undefined): Promise<string[]> {
    const front = startFront(server.url, rewrite)
    const faults: string[] = []
    for (const one of all) {
      const caller = await callerOf(front.port, one.pair, one.bring(one.pair))
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

    expect(faults).toContain('Authorization: Bearer and X-API-KEY: good, good of another user')
  })
})
