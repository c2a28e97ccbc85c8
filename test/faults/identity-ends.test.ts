// Remembered identities end with the credential, or because the identity service could not confirm them.
import { describe, expect, test } from 'bun:test'
import { identity } from '../support/api/api-server.ts'
import { claimsOf, type IssuedToken } from '../support/api/scoped-tokens.ts'
import { useRunning } from '../support/basics/running.ts'
import { OutageWorld, type Person } from './outage-world.ts'

const world = useRunning(() =>
  OutageWorld.open({
    settings: {
      BERTH_AUTH__CHALLENGE: 'bearer',
      BERTH_AUTH__CACHE: '1h',
      // Nothing else is asked about meanwhile, so a caller can be forgotten only because the credential ended.
      BERTH_AUTH__CACHE_REFRESH: '1h',
      BERTH_AUTH__OUTAGE: '24h',
    },
  }),
)

const [minuteMs, hourMs] = [60_000, 3_600_000]
const list = (person: Person) => world.ask(person, 'GET', '/v2/_catalog')
const me = (person: Person) => world.ask(person, 'GET', `${identity}/me`)
const askForToken = (person: Person) => world.ask(person, 'GET', `/v2/_token?scope=registry:catalog:*`)

async function fetchToken(person: Person): Promise<IssuedToken & { readonly endsAt: number }> {
  const { status, text } = await askForToken(person)
  if (status !== 200) throw new Error(`no token, but ${status}: ${text}`)
  const issued = JSON.parse(text) as IssuedToken
  return { ...issued, endsAt: Number(claimsOf(issued.token)['exp']) * 1000 }
}

async function statusOf(token: string): Promise<number> {
  const person = { secret: token, account: 'acme' }
  const carry = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } })
  return (await world.ask(person, 'GET', '/v2/_catalog', { carry })).status
}

/** A caller whom the service has confirmed just now. */
async function confirmedPerson(more: Readonly<Record<string, unknown>> = {}): Promise<Person> {
  await world.stub.set('good')
  const person = world.addPerson('acme', more)
  await world.askWell(person, 'GET', '/v2/')
  return person
}

/** A caller who was confirmed long ago. The service is unavailable now. */
async function unconfirmedPerson(): Promise<Person> {
  const person = await confirmedPerson()
  world.clock.now += 2 * hourMs
  await world.stub.set('503')
  return person
}

const personForTenMinutes = () =>
  confirmedPerson({ expiresAt: new Date(world.clock.now + 10 * minuteMs).toISOString() })

test.each([
  ['a caller whom the identity service could not confirm', 60, unconfirmedPerson],
  ['control: a caller whom it has confirmed', 900, () => confirmedPerson()],
  ['a credential with an end that it names', 600, personForTenMinutes],
] as const)('%s gets tokens that are valid for at most %i seconds', async (_, seconds, meet) => {
  const person = await meet()
  const at = world.clock.now
  const { token, expires_in, endsAt } = await fetchToken(person)

  expect([expires_in, endsAt]).toEqual([seconds, at + seconds * 1_000])
  world.clock.now = endsAt - 1
  expect(await statusOf(token)).toBe(200)
  world.clock.now = endsAt
  expect(await statusOf(token)).toBe(401)
})

describe('a caller whom the identity service could not confirm', () => {
  test('gets 503 at /me, because a remembered answer could be taken for a fresh one; pulls are allowed', async () => {
    const person = await unconfirmedPerson()
    const { status, headers, text } = await me(person)

    expect([status, headers.get('retry-after'), text.includes('person-')]).toEqual([503, '5', false])
    expect((await list(person)).status).toBe(200)
  })

  test('control: gets an answer at /me when the service has confirmed the caller', async () => {
    const person = await confirmedPerson()
    await world.stub.set('503')
    const { status, text } = await me(person)

    expect([status, JSON.parse(text)]).toMatchObject([200, { account: 'acme', roles: ['admin'] }])
  })
})

describe('a credential with an end that the identity service names', () => {
  test.each([
    ['is remembered until then, and not beyond, though the memory lasts longer', 'good', 401],
    ['is not bridged over an outage beyond it either', 'down', 503],
  ] as const)('%s', async (_, state, after) => {
    const person = await personForTenMinutes()
    world.stub.people.delete(person.secret)
    await world.stub.set(state)

    world.clock.now += 10 * minuteMs - 1
    expect((await list(person)).status).toBe(200)
    world.clock.now += 1
    expect([(await list(person)).status, (await askForToken(person)).status]).toEqual([after, after])
  })

  test.each([null, 7, '', 'soon', '2999-01-01T00:00:00Z', undefined])(
    'control: is remembered for the usual time without such a limit, or with a longer one: %j',
    async (expiresAt) => {
      const person = await confirmedPerson({ expiresAt })
      await world.stub.set('down')
      const { endsAt } = await fetchToken(person)

      expect(endsAt).toBe(world.clock.now + 15 * minuteMs)
      world.clock.now += 50 * minuteMs
      expect((await list(person)).status).toBe(200)
    },
  )
})
