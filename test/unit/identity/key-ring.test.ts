import { describe, expect, test } from 'bun:test'
import { KeyRing, keySetMaxAgeSeconds, publishAheadMs } from '../../../src/identity/key-ring.ts'
import { Tokens, tokenLifetimeSeconds } from '../../../src/identity/tokens.ts'
import { JwtKeys, ownAlgorithms } from '../../../src/lib/jwt.ts'
import { MemorySigningKeys, MovingClock } from '../../support/identity/memory-signing-keys.ts'
import { user } from '../../support/identity/memory-users.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

async function openRing(rotationMs = 30 * day) {
  const [keeper, clock] = [new MemorySigningKeys(), new MovingClock()]
  const ring = await KeyRing.open(keeper, clock, rotationMs)
  return { keeper, clock, ring, tokens: new Tokens(ring, clock), kids: () => ring.list().map(({ kid }) => kid) }
}

/** As another process checks tokens: with a copy of the public keys. */
async function isGoodBy(copy: Awaited<ReturnType<KeyRing['publicKeys']>>, token: string, clock: MovingClock) {
  const rules = { algorithms: ownAlgorithms, issuer: 'berth', audience: 'berth', nowMs: clock.at }
  return 'claims' in (await new JwtKeys(copy).verify(token, rules))
}

describe('the first key', () => {
  test('is created by the first process that opens the ring, signs at once, and is found by the next', async () => {
    const { keeper, clock, ring } = await openRing()
    const again = await KeyRing.open(keeper, clock, 0)

    expect(keeper.kept.size).toBe(1)
    expect(ring.signing()).toEqual(again.signing())
    expect((await ring.signer()).kid).toBe(ring.signing().kid)
    expect((await ring.publicKeys()).map(({ kid }) => kid)).toEqual([ring.signing().kid])
  })

  test('is published without its secret part', async () => {
    const { ring } = await openRing()

    expect(await ring.publicKeys()).toEqual([
      { kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid: ring.signing().kid, alg: 'EdDSA', use: 'sig' },
    ])
    expect(JSON.stringify([await ring.publicKeys(), ring.list()])).not.toContain(String(ring.signing().privateJwk['d']))
  })
})

describe('the next key', () => {
  test('is published at once, and signs only when every process can know it', async () => {
    const { clock, ring } = await openRing()
    const old = ring.signing().kid
    clock.at += day
    const next = (await ring.rotate()).kid

    expect((await ring.publicKeys()).map(({ kid }) => kid)).toEqual([old, next])
    clock.at += publishAheadMs - 1
    expect((await ring.signer()).kid).toBe(old)
    clock.at += 1
    expect((await ring.signer()).kid).toBe(next)
  })

  test('is by then in every copy of the key set that is not expired', async () => {
    const { clock, ring, tokens } = await openRing()
    clock.at += day
    let copy = await ring.publicKeys()
    let takenAt = clock.at
    await ring.rotate()

    for (let passed = 0; passed < 2 * hour; passed += minute) {
      if (clock.at - takenAt >= keySetMaxAgeSeconds * 1000) [copy, takenAt] = [await ring.publicKeys(), clock.at]
      expect([passed, await isGoodBy(copy, await tokens.issue(user()), clock)]).toEqual([passed, true])
      clock.at += minute
    }
    expect(ring.signing().kid).toBe(ring.list()[1]?.kid ?? '')
  })

  test('would not be known to a process that never looks again (the control of the test above)', async () => {
    const { clock, ring, tokens } = await openRing()
    clock.at += day
    const copy = await ring.publicKeys()
    await ring.rotate()
    clock.at += publishAheadMs

    expect(await isGoodBy(copy, await tokens.issue(user()), clock)).toBe(false)
  })
})

describe('an old key', () => {
  test('counts until all that it signed is over, and then it goes', async () => {
    const { clock, ring, tokens, kids } = await openRing(0)
    const old = ring.signing().kid
    clock.at += day
    await ring.rotate()
    clock.at += publishAheadMs - 1000
    const last = await tokens.issue(user())

    for (let passed = 0; passed < tokenLifetimeSeconds - 600; passed += 600) {
      await ring.tend()
      expect([passed, (await tokens.verify(last))?.userName]).toEqual([passed, 'ann'])
      clock.at += 600_000
    }
    clock.at += 2 * hour
    await ring.tend()

    expect(kids()).not.toContain(old)
    expect(kids()).toHaveLength(1)
    expect((await tokens.verify(await tokens.issue(user())))?.userName).toBe('ann')
  })

  test.each([hour, 12 * hour, day, 7 * day])('goes however often keys change: every %d ms', async (rotationMs) => {
    const { clock, ring, tokens, kids } = await openRing(rotationMs)
    const first = ring.signing().kid
    const issued: { token: string; until: number }[] = []

    for (let step = 0; step < 400; step += 1) {
      issued.push({ token: await tokens.issue(user()), until: clock.at + tokenLifetimeSeconds * 1000 })
      clock.at += rotationMs / 8
      await ring.tend()
      const oldest = issued.findIndex(({ until }) => until > clock.at)
      const { token } = issued[oldest] ?? issued.at(-1) ?? { token: '' }
      if (oldest !== -1) expect([step, (await tokens.verify(token))?.userName]).toEqual([step, 'ann'])
    }

    expect(kids()).not.toContain(first)
    expect(kids().length).toBeLessThanOrEqual(2 + Math.ceil((26 * hour) / rotationMs))
  })
})

describe('tending', () => {
  test('makes the next key when it is time, once, however often it is called', async () => {
    const { clock, ring, kids } = await openRing(30 * day)
    clock.at += 30 * day - 1
    await ring.tend()
    expect(kids()).toHaveLength(1)

    clock.at += 1
    for (let times = 0; times < 5; times += 1) await ring.tend()
    expect(kids()).toHaveLength(2)
  })

  test('never makes one where rotation is off', async () => {
    const { clock, ring, kids } = await openRing(0)
    clock.at += 10_000 * day
    await ring.tend()

    expect(kids()).toHaveLength(1)
  })

  test('by several processes at once ends in keys that all agree on', async () => {
    const { clock, keeper, ring, tokens } = await openRing(30 * day)
    const other = await KeyRing.open(keeper, clock, 30 * day)
    clock.at += 30 * day
    await Promise.all([ring.tend(), other.tend()])
    await Promise.all([ring.tend(), other.tend()])
    clock.at += publishAheadMs

    expect((await ring.signer()).kid).toBe((await other.signer()).kid)
    expect(await new Tokens(other, clock).verify(await tokens.issue(user()))).toBeDefined()
    clock.at += 2 * day
    await Promise.all([ring.tend(), other.tend()])
    expect(keeper.kept.size).toBe(1)
  })
})

describe('a clock that is wrong', () => {
  test('and is set back does not end tokens, nor keep other processes’ keys from being seen', async () => {
    const { clock, keeper, ring, tokens } = await openRing()
    const token = await tokens.issue(user())
    clock.at -= 2 * day
    const other = await KeyRing.open(keeper, clock, 0)
    const replaced = await other.replaceAll()

    expect((await ring.signer()).kid).toBe(replaced.kid)
    expect(await tokens.verify(token)).toBeUndefined()
    expect(await tokens.verify(await tokens.issue(user()))).toBeDefined()
  })

  test('and set back leaves the tokens of before good', async () => {
    const { clock, ring, tokens } = await openRing()
    const token = await tokens.issue(user())
    clock.at -= 2 * day
    await ring.tend()

    expect((await tokens.verify(token))?.userName).toBe('ann')
  })

  test('and made a key years ahead does not stop the rotation when it is right again', async () => {
    const { clock, ring, tokens, kids } = await openRing(30 * day)
    const right = clock.at
    clock.at += 4_000 * day
    await ring.replaceAll()
    clock.at = right
    await ring.tend()
    expect(kids()).toHaveLength(2)
    await ring.tend()
    expect(kids()).toHaveLength(2)

    clock.at += 31 * day
    await ring.tend()
    expect(kids()).toHaveLength(3)
    expect((await tokens.verify(await tokens.issue(user())))?.userName).toBe('ann')
  })

  test('and is set back by seconds makes no key', async () => {
    const { clock, ring, kids } = await openRing(30 * day)
    clock.at -= 5_000
    await ring.tend()

    expect(kids()).toHaveLength(1)
  })
})
