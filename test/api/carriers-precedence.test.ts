// Two carriers in one request. Authorization comes first, then X-API-KEY, the query and the cookie. The first that is present
// decides, also if it is invalid; a repeated carrier is invalid (decisions.md 5).
import { afterAll, expect, test } from 'bun:test'
import { identity } from '../support/api/api-server.ts'
import { addUser, type Carrier, carriers, logIn, makeKey, makeSecrets, placesInOrder } from '../support/api/carriers.ts'
import { askRaw } from '../support/clients/raw-socket.ts'
import { startMoved } from '../support/server/moved-server.ts'

const server = await startMoved({ settings: { BERTH_AUTH__FAILURE_BURST: '1000000' } })
afterAll(() => server.stop())

const own = await makeSecrets(server)
const password = 'a password of another user'
await addUser(server, 'other', password)
const others = {
  apiKey: await makeKey(server, 'key', 'other'),
  token: await logIn(server, 'other', password),
  password,
}

/** What a carrier contains, and the caller that it stands for. */
const contents = {
  good: { secretIn: ({ kind }: Carrier) => own[kind].good, caller: 'admin' },
  bad: { secretIn: ({ kind }: Carrier) => own[kind].bad, caller: '401' },
  expired: { secretIn: ({ kind }: Carrier) => own[kind].expired, caller: '401' },
  'of another user': { secretIn: ({ kind }: Carrier) => others[kind], caller: 'other' },
} as const
type Content = keyof typeof contents

const cases: readonly (readonly [first: Content, second: Content])[] = [
  ['good', 'bad'],
  ['bad', 'good'],
  ['good', 'expired'],
  ['expired', 'good'],
  ['good', 'of another user'],
  ['bad', 'bad'],
]
const pairs = carriers.flatMap((first) => carriers.map((second) => [first, second] as const))

/** The name of the caller that the server recognises, or the status of its refusal. */
async function callerOf(brought: readonly (readonly [carrier: Carrier, content: Content])[]): Promise<string> {
  const carried = brought.map(([carrier, content]) => carrier.carry(contents[content].secretIn(carrier)))
  const query = carried.flatMap((one) => one.query ?? []).join('&')
  const headers = carried.flatMap((one) => Object.entries(one.headers ?? {}))
  // A browser writes all cookies into one line.
  const cookies = headers.filter(([name]) => name === 'cookie').map(([, value]) => value)
  const lines = headers.filter(([name]) => name !== 'cookie').map(([name, value]) => `${name}: ${value}`)
  if (cookies.length > 0) lines.push(`cookie: ${cookies.join('; ')}`)
  const { status, body } = await askRaw(server.port, `GET ${identity}/me?${query} HTTP/1.1`, lines)
  return status === 200 ? JSON.parse(body).user : String(status)
}

test.each(cases)(
  'of a carrier that is %s and another that is %s, the first in the order decides',
  async (one, other) => {
    for (const pair of pairs) {
      const brought = [[pair[0], one] as const, [pair[1], other] as const]
      const [decider, next] = brought.toSorted(
        ([before], [after]) => placesInOrder.indexOf(before.place) - placesInOrder.indexOf(after.place),
      )
      const [carrier, content] = decider ?? []
      const isRepeated = carrier?.place === next?.[0].place
      // The name of the administrator does not belong to the credential of another user.
      const isMismatch = carrier?.isNamed && content === 'of another user'
      const expected = isRepeated || isMismatch ? '401' : contents[content ?? 'bad'].caller
      const titles = pair.map(({ name }) => name)
      expect([...titles, await callerOf(brought)]).toEqual([...titles, expected])
    }
  },
)
