// The keys that sign tokens: their rotation, and several processes with the same keys, such as a server and a command.
import { describe, expect, test } from 'bun:test'
import { KeyRing, keySetMaxAgeSeconds, publishAheadMs } from '../../../src/identity/key-ring.ts'
import { Tokens, tokenLifetimeSeconds } from '../../../src/identity/tokens.ts'
import { JwtKeys, ownAlgorithms, signJwt } from '../../../src/lib/jwt.ts'
import type { SigningKeys } from '../../../src/ports/signing-keys.ts'
import { Gate } from '../../support/clocks/gates.ts'
import { MemorySigningKeys, MovingClock } from '../../support/identity/memory-signing-keys.ts'
import { user } from '../../support/identity/memory-users.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** A server and a command with the same keys. The command never rotates by itself. */
async function openRings(rotationMs = 0) {
  const [store, clock] = [new MemorySigningKeys(), new MovingClock()]
  const [server, command] = [await KeyRing.open(store, clock, rotationMs), await KeyRing.open(store, clock, 0)]
  const [serverTokens, commandTokens] = [new Tokens(server, clock), new Tokens(command, clock)]
  return { store, clock, server, command, serverTokens, commandTokens, kids: () => server.list().map(({ kid }) => kid) }
}

async function isValid(tokens: Tokens, token: string): Promise<boolean> {
  return (await tokens.verify(token))?.userName === 'ann'
}

describe('the first key', () => {
  test('is created by the first process that opens the ring, signs at once, and is found by the next', async () => {
    const { store, server, command } = await openRings()

    expect(store.kept.size).toBe(1)
    expect(server.signing()).toEqual(command.signing())
    expect((await server.signer()).kid).toBe(server.signing().kid)
  })

  test('of two processes that start together: each accepts the tokens of the other at once', async () => {
    const [store, clock, gate] = [new MemorySigningKeys(), new MovingClock(), new Gate()]
    const add: SigningKeys['add'] = (key) => gate.pass().then(() => store.add(key))
    const slow = { list: () => store.list(), remove: (kid: string) => store.remove(kid), add }
    const opening = KeyRing.open(slow, clock, 0)
    await gate.reached
    clock.at += 1
    const quick = await KeyRing.open(store, clock, 0)
    gate.open()
    const rings = [quick, await opening] as const
    expect(store.kept.size).toBe(2)

    for (const [one, other] of [rings, rings.toReversed()] as const) {
      const token = one && (await new Tokens(one, clock).issue(user()))
      expect(other && (await isValid(new Tokens(other, clock), token ?? ''))).toBe(true)
    }
  })
})

describe('the next key', () => {
  test('is published at once, and signs at the same moment in every process', async () => {
    const { clock, server, command } = await openRings()
    const old = server.signing().kid
    clock.at += day
    const next = (await command.rotate()).kid
    clock.at += 1_000

    expect((await server.publicKeys()).map(({ kid }) => kid)).toEqual([old, next])
    for (const passed of [0, minute, publishAheadMs - minute - 1_001, 1, 1, day, day]) {
      clock.at += passed
      expect((await server.signer()).kid).toBe((await command.signer()).kid)
    }
    expect(server.signing().kid).toBe(next)
  })

  test.each([
    ['is by then in every copy of the key set that has not expired', keySetMaxAgeSeconds * 1_000, true],
    ['is not in a copy that is never renewed (control)', Infinity, false],
  ])('%s', async (_, copyLifeMs, isKnown) => {
    const { clock, server, serverTokens } = await openRings()
    const rules = { algorithms: ownAlgorithms, issuer: 'berth', audience: 'berth' }
    clock.at += day
    let copy = { keys: await server.publicKeys(), takenAt: clock.at }
    await server.rotate()
    const valid = new Set<boolean>()

    for (let passed = 0; passed < hour; passed += minute) {
      if (clock.at - copy.takenAt >= copyLifeMs) copy = { keys: await server.publicKeys(), takenAt: clock.at }
      const verdict = await new JwtKeys(copy.keys).verify(await serverTokens.issue(user()), {
        ...rules,
        nowMs: clock.at,
      })
      valid.add('claims' in verdict)
      clock.at += minute
    }

    expect(valid).toEqual(new Set(isKnown ? [true] : [true, false]))
  })
})

describe('an old key', () => {
  test.each([hour, 12 * hour, day, 7 * day])(
    'is kept until its last token has expired, and then removed: rotation every %d ms',
    async (rotationMs) => {
      const { clock, server, serverTokens, kids } = await openRings(rotationMs)
      const first = server.signing().kid
      const issued: { token: string; until: number }[] = []

      for (let step = 0; step < 210; step += 1) {
        issued.push({ token: await serverTokens.issue(user()), until: clock.at + tokenLifetimeSeconds * 1000 })
        clock.at += rotationMs / 4
        await server.tend()
        const oldest = issued.find(({ until }) => until > clock.at)
        if (oldest !== undefined) expect([step, await isValid(serverTokens, oldest.token)]).toEqual([step, true])
      }

      expect(kids()).not.toContain(first)
      expect(kids().length).toBeLessThanOrEqual(2 + Math.ceil((26 * hour) / rotationMs))
    },
  )

  test('is kept until then though the clock of the process that tends the keys is half an hour ahead', async () => {
    const { store, clock, server, serverTokens } = await openRings()
    const ahead = await KeyRing.open(store, { ...clock, now: () => clock.at + 30 * minute }, 0)
    clock.at += day
    await server.rotate()
    clock.at += publishAheadMs - 1_000
    const last = await serverTokens.issue(user())
    clock.at += day - 1_000
    await ahead.tend()

    expect(await isValid(serverTokens, last)).toBe(true)
  })
})

describe('tending', () => {
  test.each([
    ['creates the next key when it is due, once', 30 * day, [30 * day - 1, 1, 0, 1_000], [1, 2, 2, 2]],
    ['creates no key if the rotation is off', 0, [30 * day, 10_000 * day], [1, 1]],
    ['creates no key if the clock is set back by seconds', 30 * day, [-5_000], [1]],
  ])('%s', async (_, rotationMs, calledAfterMs, keys) => {
    const { clock, server, kids } = await openRings(rotationMs)
    for (const [at, passedMs] of calledAfterMs.entries()) {
      clock.at += passedMs
      await server.tend()
      expect(kids()).toHaveLength(keys[at] ?? 0)
    }
  })

  test('goes on when the clock is right again, after it dated a key years ahead', async () => {
    const { clock, server, serverTokens, kids } = await openRings(30 * day)
    const right = clock.at
    clock.at += 4_000 * day
    await server.replaceAll()
    clock.at = right
    for (const keys of [2, 2, 3]) {
      if (keys === 3) clock.at += 31 * day
      await server.tend()
      expect(kids()).toHaveLength(keys)
    }
    expect(await isValid(serverTokens, await serverTokens.issue(user()))).toBe(true)
  })

  test('by several processes at once ends in keys on which all agree', async () => {
    const { clock, store, server, serverTokens } = await openRings(30 * day)
    const other = await KeyRing.open(store, clock, 30 * day)
    const tendBoth = () => Promise.all([server.tend(), other.tend()])
    clock.at += 30 * day
    await tendBoth()
    await tendBoth()
    clock.at += publishAheadMs

    expect((await server.signer()).kid).toBe((await other.signer()).kid)
    expect(await isValid(new Tokens(other, clock), await serverTokens.issue(user()))).toBe(true)
    clock.at += 2 * day
    await tendBoth()
    expect(store.kept.size).toBe(1)
  })
})

test('a clock that is set back ends no tokens, and does not hide keys that another process replaces', async () => {
  const { clock, server, command, serverTokens } = await openRings()
  const token = await serverTokens.issue(user())
  clock.at -= 2 * day
  await server.tend()
  expect(await isValid(serverTokens, token)).toBe(true)
  clock.at -= minute
  const replaced = await command.replaceAll()

  expect((await server.signer()).kid).toBe(replaced.kid)
  expect(await isValid(serverTokens, token)).toBe(false)
  expect(await isValid(serverTokens, await serverTokens.issue(user()))).toBe(true)
})

describe('after one process has replaced all keys', () => {
  test('earlier tokens are refused at once there and within seconds elsewhere, and one key signs at once', async () => {
    const { store, clock, command, serverTokens, commandTokens } = await openRings()
    const old = [await serverTokens.issue(user()), await commandTokens.issue(user())]
    await command.rotate()
    const { kid } = await command.replaceAll()

    expect([[...store.kept.keys()], (await command.signer()).kid]).toEqual([[kid], kid])
    for (const token of old) expect(await isValid(commandTokens, token)).toBe(false)
    expect(await isValid(commandTokens, await commandTokens.issue(user()))).toBe(true)
    clock.at += 10_000
    for (const token of old) expect(await isValid(serverTokens, token)).toBe(false)
  })

  test.each([
    ['its tokens are accepted elsewhere though the new key was not loaded there', 1_000, 'commandTokens'],
    ['a login elsewhere gets a valid token seconds later, though no token was checked', 10_000, 'serverTokens'],
  ] as const)('%s', async (_, passedMs, issuer) => {
    const { clock, command, ...tokens } = await openRings()
    await command.replaceAll()
    clock.at += passedMs
    const token = await tokens[issuer].issue(user())

    expect([await isValid(tokens.serverTokens, token), await isValid(tokens.commandTokens, token)]).toEqual([
      true,
      true,
    ])
  })
})

test('if all keys were removed from the store, tokens end, and the next login or the next tending creates a key', async () => {
  const { store, clock, server, serverTokens } = await openRings()
  const old = await serverTokens.issue(user())
  store.kept.clear()
  clock.at += 10_000
  expect(await isValid(serverTokens, old)).toBe(false)
  expect(await server.publicKeys()).toEqual([])
  expect(await isValid(serverTokens, await serverTokens.issue(user()))).toBe(true)
  store.kept.clear()
  await server.tend()

  expect([server.signing().kid]).toEqual([...store.kept.keys()])
})

describe('the keys are read', () => {
  test('once a second for tokens of unknown keys, however many come, and not for those of known keys', async () => {
    const { store, clock, server, serverTokens } = await openRings()
    const foreign = await KeyRing.open(new MemorySigningKeys(), clock, 0)
    const token = await serverTokens.issue(user())
    const unknown = await signJwt({ exp: clock.at / 1000 + 60 }, { ...foreign.signing(), type: 'JWT' })
    const verifyMany = async () => {
      const before = store.looks
      const rules = { algorithms: ownAlgorithms, nowMs: clock.at }
      await Promise.all(Array.from({ length: 100 }, () => server.verify(unknown, rules)))
      for (let times = 0; times < 100; times += 1) await server.verify(unknown, rules)
      return store.looks - before
    }

    for (let seconds = 1; seconds <= 2; seconds += 1) {
      clock.at += 1_000
      expect(await verifyMany()).toBe(1)
    }
    clock.at += 9_999
    const before = store.looks
    for (let times = 0; times < 100; times += 1) await serverTokens.verify(token)
    expect(store.looks).toBe(before)
  })

  test('and a read that ends late does not undo what a later read has found', async () => {
    const { store, clock } = await openRings()
    const gate = new Gate()
    let isHeld = false
    const slow: SigningKeys = {
      add: (key) => store.add(key),
      remove: (kid) => store.remove(kid),
      async list() {
        const keys = await store.list()
        if (isHeld) await gate.pass()
        return keys
      },
    }
    const ring = await KeyRing.open(slow, clock, 0)
    isHeld = true
    const late = ring.reload()
    await gate.reached
    isHeld = false
    const { kid } = await ring.replaceAll()
    gate.open()
    await late

    expect(ring.list().map((key) => key.kid)).toEqual([kid])
  })
})
