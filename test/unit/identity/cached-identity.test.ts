import { beforeEach, describe, expect, test } from 'bun:test'
import { CachedIdentity } from '../../../src/identity/cached-identity.ts'
import { Unavailable } from '../../../src/oci/errors.ts'
import type { Credential, Principal } from '../../../src/ports/identity.ts'
import { errorOf } from '../../support/outcomes.ts'

const maxAgeMs = 10_000
const key: Credential = { kind: 'api-key', secret: 'k' }

/** An identity service that counts its questions and answers whatever it is set to. */
class Service {
  asked = 0
  answer: Principal | undefined | Error = principal('first')

  async authenticate(): Promise<Principal | undefined> {
    this.asked += 1
    if (this.answer instanceof Error) throw this.answer
    return this.answer
  }
}

function principal(subject: string, expiresAt?: number): Principal {
  return { account: 'acme', subject, roles: [], rights: new Set(), fingerprint: 'f', expiresAt }
}

let now = 0
let service = new Service()
let identity = new CachedIdentity(service, { now: () => now }, maxAgeMs)

beforeEach(() => {
  now = 1_000_000
  service = new Service()
  identity = new CachedIdentity(service, { now: () => now }, maxAgeMs)
})

describe('a good credential', () => {
  test('is asked about once, until its time is over to the millisecond', async () => {
    await identity.authenticate(key)
    service.answer = principal('second')

    now += maxAgeMs - 1
    expect((await identity.authenticate(key))?.subject).toBe('first')
    expect(service.asked).toBe(1)

    now += 1
    expect((await identity.authenticate(key))?.subject).toBe('second')
    expect(service.asked).toBe(2)
  })

  test('is never remembered beyond its own end', async () => {
    service.answer = principal('short', now + 500)
    await identity.authenticate(key)
    service.answer = undefined

    now += 499
    expect((await identity.authenticate(key))?.subject).toBe('short')
    now += 1
    expect(await identity.authenticate(key)).toBeUndefined()
  })

  test('that ended already is asked about each time', async () => {
    service.answer = principal('late', now)
    await identity.authenticate(key)
    await identity.authenticate(key)

    expect(service.asked).toBe(2)
  })

  test('is told from one of the other kind and from every other secret', async () => {
    await identity.authenticate(key)
    for (const other of [
      { kind: 'bearer', secret: 'k' },
      { kind: 'api-key', secret: 'K' },
      { kind: 'api-key', secret: 'k ' },
      { kind: 'api-key', secret: '' },
    ] as const) {
      service.answer = principal('other')
      expect((await identity.authenticate(other))?.subject).toBe('other')
    }
    expect((await identity.authenticate(key))?.subject).toBe('first')
  })
})

describe('a bad credential', () => {
  test('is not remembered, so that a key made a moment later works at once', async () => {
    service.answer = undefined
    expect(await identity.authenticate(key)).toBeUndefined()
    service.answer = principal('new')

    expect((await identity.authenticate(key))?.subject).toBe('new')
  })

  test('that was good before is forgotten once the service says no', async () => {
    await identity.authenticate(key)
    now += maxAgeMs
    service.answer = undefined
    expect(await identity.authenticate(key)).toBeUndefined()
    now -= maxAgeMs

    expect(await identity.authenticate(key)).toBeUndefined()
  })
})

describe('a service that is down', () => {
  test('is trouble and no wrong password, and nothing is remembered of it', async () => {
    service.answer = new Unavailable('the identity service')
    expect(await errorOf(identity.authenticate(key))).toBe(service.answer)
    service.answer = principal('back')

    expect((await identity.authenticate(key))?.subject).toBe('back')
  })

  test('is not asked about what is still remembered', async () => {
    await identity.authenticate(key)
    service.answer = new Unavailable('the identity service')

    expect((await identity.authenticate(key))?.subject).toBe('first')
  })
})

test('a cache of no age asks every time', async () => {
  const uncached = new CachedIdentity(service, { now: () => now }, 0)
  await uncached.authenticate(key)
  await uncached.authenticate(key)

  expect(service.asked).toBe(2)
})

test('the memory is bounded: the credential that was used longest ago is asked about again', async () => {
  await identity.authenticate(key)
  for (let other = 0; other < 10_000; other += 1) await identity.authenticate({ kind: 'bearer', secret: `${other}` })
  const before = service.asked
  await identity.authenticate(key)

  expect(service.asked).toBe(before + 1)
})
