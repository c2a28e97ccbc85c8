// How each answer of the service is understood: as a principal, as rejected, or as unavailable. Which request is repeated.
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { RemoteIdentityOptions } from '../../../../src/adapters/identity-remote/remote-identity.ts'
import { Unavailable } from '../../../../src/oci/errors.ts'
import type { Credential } from '../../../../src/ports/identity.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { IdentityStub, type StubState } from '../../../support/identity/identity-stub.ts'
import { aliceSaid, apiKey, bearer, noon, openRemote } from '../../../support/identity/remote-identity.ts'

const stub = await IdentityStub.start()
afterAll(() => stub.stop())

const key = apiKey('a-secret-key-of-alice-0123456789')
const token = bearer('a-secret-token-of-alice-0123456789')

/** Long enough for an answer from the loopback, where none is to be waited for. */
const shortMs = 200
let now = noon

beforeEach(async () => {
  now = noon
  await stub.set('good')
  stub.calls.length = 0
  stub.strayCalls.length = 0
  stub.people.clear()
  for (const { secret } of [key, token]) stub.people.set(secret, aliceSaid)
})

function open(more: Partial<RemoteIdentityOptions> = {}) {
  return openRemote(stub.url, { clock: { now: () => now }, ...more })
}

/** State -> the reason that the log gets. */
const speechless: readonly (readonly [StubState, string])[] = [
  ['down', 'no answer (ECONNREFUSED)'],
  ['slow', 'no answer (TimeoutError)'],
  ['slow body', 'no answer (TimeoutError)'],
  ['400', 'answered 400'],
  ['408', 'answered 408'],
  ['429', 'answered 429'],
  ['500', 'answered 500'],
  ['503', 'answered 503'],
  ['redirect', 'answered 307'],
  ['html', 'an answer that is not JSON'],
  ['truncated', 'an answer that is not JSON'],
  ['odd bytes', 'an answer that is not JSON'],
  ['a list', 'an answer that is no JSON object'],
  ['no roles', 'an answer without a list of roles'],
  ['huge', 'an answer of more than 65536 bytes'],
  ['flapping', 'answered 503'],
]

describe.each([
  ['an API key', key],
  ['a token', token],
] as const)('%s', (_, credential: Credential) => {
  test('travels in its own header, and in no other', async () => {
    expect(await open().authenticate(credential)).toMatchObject({ account: 'acme', subject: 'alice' })

    const carrier = credential.kind === 'api-key' ? 'x-api-key' : 'authorization'
    expect(stub.calls).toEqual([{ path: '/api/2021-02-21/me', carrier, secret: credential.secret }])
  })

  test.each(['401', '403'] as const)('is rejected when the service answers %s', async (state) => {
    await stub.set(state)

    expect(await open().authenticate(credential)).toBeUndefined()
  })

  test.each(speechless)('is neither good nor bad when the service is %s, and is in no error', async (state, reason) => {
    await stub.set(state)
    const error = (await errorOf(open({ timeoutMs: shortMs }).authenticate(credential))) as Unavailable

    expect(error).toBeInstanceOf(Unavailable)
    expect(error.message).toBe('the identity service is unavailable')
    expect(error.cause).toMatchObject({ name: 'ServiceFault', message: reason })
    for (const part of [credential.secret, credential.secret.slice(2, 12)]) expect(tellAll(error)).not.toContain(part)
    // A request that may have arrived is not repeated, and no redirect is followed.
    expect([stub.calls.length, stub.strayCalls]).toEqual([state === 'down' ? 0 : 1, []])
  })
})

/** All that a log could make of an error: its causes, their stacks, and fields that are not shown by default. */
function tellAll(error: unknown): string {
  if (!(error instanceof Error)) return Bun.inspect(error, { depth: 20 })
  const fields = Object.getOwnPropertyNames(error).map((name) => Bun.inspect(Reflect.get(error, name), { depth: 20 }))
  return [Bun.inspect(error, { depth: 20 }), String(error.stack), ...fields, tellAll(error.cause)].join('\n')
}

test('a look into an error finds a secret wherever it stands', () => {
  const deep = new Error('a', { cause: Object.assign(new Error('b'), { request: { headers: { x: key.secret } } }) })
  const hidden = Object.defineProperty(new Error('a'), 'path', { value: key.secret, enumerable: false })

  for (const error of [deep, hidden]) expect(tellAll(error)).toContain(key.secret)
})

test('a credential that no header can carry is rejected without a request; all others are sent', async () => {
  const printable = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)).join('')
  const good = [printable, 'a'.repeat(8_192)]
  const odd = [
    '',
    ' ',
    'two words',
    'a\tb',
    'a\nb',
    'a\r\nx-api-key: b',
    'a\0b',
    'a\x7f',
    'schl\u00fcssel',
    '\u{1f511}',
  ]
  for (const secret of [...good, ...odd, 'a'.repeat(8_193)]) {
    stub.people.set(secret, aliceSaid)
    stub.calls.length = 0
    const found = await Promise.all([open().authenticate(apiKey(secret)), open().authenticate(bearer(secret))])

    const isGood = good.includes(secret)
    const subjects = found.map((principal) => principal?.subject === 'alice')
    expect([secret, subjects, stub.calls.length]).toEqual([secret, [isGood, isGood], isGood ? 2 : 0])
  }
})

describe('the number of questions', () => {
  test('is bounded, and requests beyond the bound fail at once as unavailable', async () => {
    await stub.set('slow')
    const identity = open({ callsMax: 2, queueMax: 1, timeoutMs: shortMs })
    const errors = await Promise.all(
      [1, 2, 3, 4, 5].map((index) => errorOf(identity.authenticate(apiKey(`key-${index}`)))),
    )

    const causes = errors.map((error) => ((error as Unavailable).cause as Error).name)
    expect(errors.every((error) => error instanceof Unavailable)).toBe(true)
    expect(causes.sort()).toEqual(['NoSlot', 'NoSlot', 'ServiceFault', 'ServiceFault', 'ServiceFault'])
  })

  test.each([
    ...(['down', 'slow', '500', 'html', 'no roles', 'huge', 'redirect'] as const).map(
      (state) => [state, true] as const,
    ),
    // A client can provoke these.
    ...(['400', '401', '403', '408', '429'] as const).map((state) => [state, false] as const),
  ])('ends after failures if the service is %s: %p', async (state, isOpened) => {
    await stub.set(state)
    const identity = open({ timeoutMs: shortMs })
    const fail = (index: number) => identity.authenticate(apiKey(`odd-${index}`)).catch(() => undefined)
    await Promise.all(Array.from({ length: isOpened ? 5 : 20 }, (_, index) => fail(index)))
    await stub.set('good')

    const ask = () => identity.authenticate(key).catch(({ cause }: Unavailable) => (cause as Error).name)
    expect(await ask()).toEqual(isOpened ? 'CircuitOpen' : expect.objectContaining({ subject: 'alice' }))
    now += 2_000
    expect(await ask()).toMatchObject({ subject: 'alice' })
  })
})

test.each([
  [{ repositories: 'team/*' }],
  [{ rights: 'pull' }],
  [{ rights: { pull: true } }],
  [{ rights: 4, repositories: ['team/*'] }],
  [{ rights: ['pull'], repositories: false }],
])('a limit that is not a list makes the rights of the caller unavailable: %j', async (limits) => {
  stub.people.set(key.secret, { ...aliceSaid, ...limits })
  const error = (await errorOf(open().authenticate(key))) as Unavailable

  expect(error).toBeInstanceOf(Unavailable)
  expect(error.cause).toMatchObject({ name: 'ServiceFault', message: 'rights or repositories that are not a list' })
})

test('a bug is not reported as an unavailable service', async () => {
  const mistake = new TypeError('a mistake')
  const identity = open({
    grantsFor: () => {
      throw mistake
    },
  })

  expect(await errorOf(identity.authenticate(key))).toBe(mistake)
})

describe('a second try', () => {
  const realFetch = globalThis.fetch
  let tries = 0
  let beforeSecond = async () => {}

  // The real client is watched, not replaced.
  beforeEach(() => {
    tries = 0
    const watched = async (...given: Parameters<typeof fetch>) => {
      tries += 1
      if (tries === 2) await beforeSecond()
      return realFetch(...given)
    }
    globalThis.fetch = Object.assign(watched, { preconnect: realFetch.preconnect })
  })
  afterEach(() => {
    globalThis.fetch = realFetch
  })

  test('is made once after a connection that was refused', async () => {
    await stub.set('down')
    await errorOf(open().authenticate(key))
    expect(tries).toBe(2)

    tries = 0
    beforeSecond = () => stub.set('good')
    expect((await open().authenticate(key))?.subject).toBe('alice')
    expect(tries).toBe(2)
  })

  test('is not made for a request that may have arrived, when its connection ends', async () => {
    const closing = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: (socket) => void socket.end() } })
    await errorOf(openRemote(`http://127.0.0.1:${closing.port}`).authenticate(key))
    closing.stop(true)

    expect(tries).toBe(1)
  })
})
