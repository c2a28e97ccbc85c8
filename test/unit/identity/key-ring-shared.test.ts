// Several processes with the same keys: a server, and an operator's command beside it.
import { describe, expect, test } from 'bun:test'
import { KeyRing, publishAheadMs } from '../../../src/identity/key-ring.ts'
import { Tokens } from '../../../src/identity/tokens.ts'
import { ownAlgorithms, signJwt } from '../../../src/lib/jwt.ts'
import type { SigningKey } from '../../../src/ports/signing-keys.ts'
import { Gate } from '../../support/clocks/gates.ts'
import { MemorySigningKeys, MovingClock } from '../../support/identity/memory-signing-keys.ts'
import { user } from '../../support/identity/memory-users.ts'

const day = 86_400_000

async function openTwo() {
  const [keeper, clock] = [new MemorySigningKeys(), new MovingClock()]
  const [server, command] = [await KeyRing.open(keeper, clock, 0), await KeyRing.open(keeper, clock, 0)]
  const tokens = { server: new Tokens(server, clock), command: new Tokens(command, clock) }
  return { keeper, clock, server, command, tokens }
}

describe('two rings over one keeper', () => {
  test('agree on the signing key before, during and after a rotation', async () => {
    const { clock, server, command } = await openTwo()
    clock.at += day
    await command.rotate()

    for (const passed of [0, 60_000, publishAheadMs - 60_001, 1, 1, day, day]) {
      clock.at += passed
      expect((await server.signer()).kid).toBe((await command.signer()).kid)
    }
    expect(server.signing().kid).toBe(server.list()[1]?.kid ?? '')
  })

  test('check each other’s tokens at once, though both made a first key', async () => {
    const [keeper, clock] = [new MemorySigningKeys(), new MovingClock()]
    const rings = await Promise.all([KeyRing.open(keeper, clock, 0), KeyRing.open(keeper, clock, 0)])
    expect(keeper.kept.size).toBe(2)
    clock.at += 1_000

    for (const [one, other] of [rings, rings.toReversed()] as const) {
      const token = one && (await new Tokens(one, clock).issue(user()))
      expect(other && (await new Tokens(other, clock).verify(token ?? ''))?.userName).toBe('ann')
    }
  })
})

test('a key is kept until its last token has ended, though the clock of the process that tends the keys is ahead', async () => {
  const { keeper, clock, server, tokens } = await openTwo()
  const ahead = await KeyRing.open(keeper, { ...clock, now: () => clock.at + 30 * 60_000 }, 0)
  clock.at += day
  await server.rotate()
  clock.at += publishAheadMs - 1_000
  const last = await tokens.server.issue(user())
  clock.at += day - 1_000
  await ahead.tend()

  expect((await tokens.server.verify(last))?.userName).toBe('ann')
})

describe('after all keys were replaced', () => {
  test('all old tokens are refused, at once in the process that replaced the keys and within seconds in the others', async () => {
    const { clock, command, tokens } = await openTwo()
    const old = [await tokens.server.issue(user()), await tokens.command.issue(user())]
    await command.replaceAll()

    for (const token of old) expect(await tokens.command.verify(token)).toBeUndefined()
    clock.at += 10_000
    for (const token of old) expect(await tokens.server.verify(token)).toBeUndefined()
  })

  test('there is one key, and it signs at once', async () => {
    const { keeper, command, tokens } = await openTwo()
    await command.rotate()
    const { kid } = await command.replaceAll()

    expect([...keeper.kept.keys()]).toEqual([kid])
    expect((await command.signer()).kid).toBe(kid)
    expect((await tokens.command.verify(await tokens.command.issue(user())))?.userName).toBe('ann')
  })

  test('a token of the new key is accepted by a process that has not loaded the key yet', async () => {
    const { clock, command, tokens } = await openTwo()
    clock.at += 1_000
    await command.replaceAll()

    expect((await tokens.server.verify(await tokens.command.issue(user())))?.userName).toBe('ann')
  })

  test('a login a little later gets a valid token, although nothing was checked meanwhile', async () => {
    const { clock, command, tokens } = await openTwo()
    await command.replaceAll()
    clock.at += 10_000

    const token = await tokens.server.issue(user())

    expect((await tokens.server.verify(token))?.userName).toBe('ann')
    expect((await tokens.command.verify(token))?.userName).toBe('ann')
  })

  test('by removing the files, the next login creates a new key', async () => {
    const { keeper, clock, server, tokens } = await openTwo()
    const old = await tokens.server.issue(user())
    keeper.kept.clear()
    clock.at += 10_000

    expect(await tokens.server.verify(old)).toBeUndefined()
    expect(await server.publicKeys()).toEqual([])
    expect((await tokens.server.verify(await tokens.server.issue(user())))?.userName).toBe('ann')
    await server.tend()
    expect(keeper.kept.size).toBe(1)
  })

  test('by taking the files away, tending makes a new key, though rotation is off', async () => {
    const { keeper, server } = await openTwo()
    keeper.kept.clear()
    await server.tend()

    expect(keeper.kept.size).toBe(1)
    expect(server.signing().kid).toBe([...keeper.kept.keys()][0] ?? '')
  })
})

describe('looking for keys', () => {
  const rules = (clock: MovingClock) => ({ algorithms: ownAlgorithms, nowMs: clock.at })

  async function foreignToken(clock: MovingClock): Promise<string> {
    const foreign = await KeyRing.open(new MemorySigningKeys(), clock, 0)
    return signJwt({ exp: clock.at / 1000 + 60 }, { ...foreign.signing(), type: 'JWT' })
  }

  test('that there never were costs one look a second, however many are named', async () => {
    const { keeper, clock, server } = await openTwo()
    clock.at += 1_000
    const token = await foreignToken(clock)
    const before = keeper.looks

    for (let times = 0; times < 100; times += 1) await server.verify(token, rules(clock))
    await Promise.all(Array.from({ length: 100 }, () => server.verify(token, rules(clock))))
    expect(keeper.looks - before).toBe(1)

    clock.at += 1_000
    await Promise.all(Array.from({ length: 100 }, () => server.verify(token, rules(clock))))
    expect(keeper.looks - before).toBe(2)
  })

  test('is not done for tokens of keys that are known', async () => {
    const { keeper, clock, tokens } = await openTwo()
    const token = await tokens.server.issue(user())
    clock.at += 9_999
    const before = keeper.looks

    for (let times = 0; times < 100; times += 1) await tokens.server.verify(token)

    expect(keeper.looks).toBe(before)
  })

  test('that ends late does not undo what a later look has seen', async () => {
    const { keeper, clock } = await openTwo()
    const gate = new Gate()
    const slow = new SlowKeys(keeper)
    const ring = await KeyRing.open(slow, clock, 0)
    slow.hold = gate
    const late = ring.reload()
    await gate.reached
    slow.hold = undefined
    const { kid } = await ring.replaceAll()
    gate.open()
    await late

    expect(ring.list().map((key) => key.kid)).toEqual([kid])
  })
})

class SlowKeys extends MemorySigningKeys {
  hold: Gate | undefined
  readonly #inner: MemorySigningKeys

  constructor(inner: MemorySigningKeys) {
    super()
    this.#inner = inner
  }

  override async list(): Promise<SigningKey[]> {
    const keys = await this.#inner.list()
    await this.hold?.pass()
    return keys
  }

  override add(key: SigningKey): Promise<void> {
    return this.#inner.add(key)
  }

  override remove(kid: string): Promise<void> {
    return this.#inner.remove(kid)
  }
}
