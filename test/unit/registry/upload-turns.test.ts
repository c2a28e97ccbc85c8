// A writer's turn at an upload: it is renewed in time whatever the request waits for, even if the clock of the machine
// is set meanwhile, and no writer that is alive is taken for dead.
import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { ByteSource } from '../../../src/lib/byte-source.ts'
import { RegistryRefusal, Unavailable } from '../../../src/oci/errors.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import { turnMs } from '../../../src/registry/turn-heartbeat.ts'
import type { TurnNeeds } from '../../../src/registry/upload-turn.ts'
import { UploadWriters } from '../../../src/registry/upload-writers.ts'
import { appendToUpload, finishUpload, startUpload } from '../../../src/registry/uploads.ts'
import { digestOf } from '../../support/basics/generated-bytes.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { before, beforeCall, Gate } from '../../support/clocks/gates.ts'
import { until } from '../../support/clocks/until.ts'
import { countRows } from '../../support/stores/store-audit.ts'
import { damageMetadata } from '../../support/stores/store-damage.ts'
import { bodyOf, openWorld, scopeOf } from '../../support/stores/use-case-world.ts'

const temporaryFolder = useTemporaryFolders('turns')

/** How the time really goes by, and what the machine's clock is off. */
interface Time {
  at: number
  offMs: number
}

function clockOf(time: Time): Clock {
  return { ...systemClock, now: () => time.at + time.offMs, steadyNow: () => time.at }
}

/** A world of that clock with an upload in it. */
async function openTurns(clock: Clock) {
  const world = await openWorld(temporaryFolder())
  const owner = { ...(await scopeOf(world)), subject: 'alice' }
  const { id } = await startUpload(world, owner, 'free')
  return { needs: { ...world, clock, writers: new UploadWriters(clock) }, owner, id }
}

/** A clock whose timers go off when the test says so. */
function heldTimers() {
  const timers = new Map<() => void, number>()
  const time = { at: 1_000 }
  const clock: Clock = {
    ...systemClock,
    steadyNow: () => time.at,
    every(intervalMs, act) {
      timers.set(act, intervalMs)
      return { [Symbol.dispose]: () => void timers.delete(act) }
    },
  }
  return { timers, time, clock, goOff: () => [...timers.keys()].map((act) => act()) }
}

const whole = new Uint8Array(100).fill(7)

/** A closing request that stands at a step of the blob store until it is let go. */
async function holdAt(step: 'complete' | 'read') {
  const { timers, time, clock, goOff } = heldTimers()
  const { needs, owner, id } = await openTurns(clock)
  const gate = new Gate()
  let fault: Error | undefined
  const pass = async () => {
    await gate.pass()
    if (fault !== undefined) throw fault
  }
  const fail = () => {
    fault = new Error('the store failed')
  }
  const blobs: TurnNeeds['blobs'] = {
    has: (...asked) => needs.blobs.has(...asked),
    async openWriter(key, from) {
      const writer = await needs.blobs.openWriter(key, from)
      return step === 'complete' ? beforeCall(writer, 'complete', pass) : writer
    },
    async read(key, sizeBytes) {
      await pass()
      return needs.blobs.read(key, sizeBytes)
    },
  }
  // The hash of another process, so that the stored bytes are read.
  await appendToUpload({ ...needs, writers: new UploadWriters(clock) }, owner, id, bodyOf(whole))
  const digest = digestOf(whole, 'sha512')
  const closing = finishUpload({ ...needs, blobs }, owner, id, digest, bodyOf()).then(
    () => 'closed',
    (error: RegistryRefusal) => error.refusal,
  )
  await gate.reached
  const damage = (sql: string) => damageMetadata(needs.dataDir, sql)
  const isYoung = (column: string) =>
    countRows(needs.dataDir, 'uploads', `${column} > unixepoch() * 1000 - 60000`) === 1
  return { needs, owner, id, fail, timers, time, goOff, gate, closing, damage, isYoung, digest }
}

describe('the heartbeat of a turn', () => {
  test.each(['complete', 'read'] as const)('renews it and the age of the session during %s', async (step) => {
    const { timers, goOff, gate, closing, damage, isYoung } = await holdAt(step)
    expect([...timers.values()]).toEqual([turnMs / 3])
    damage('UPDATE uploads SET turn_until = 1, touched_at = 1')

    goOff()
    await until('it is renewed', () => isYoung('turn_until'))

    expect(isYoung('touched_at')).toBe(true)
    gate.open()
    expect(await closing).toBe('closed')
    expect(timers.size).toBe(0)
  })

  test.each(['complete', 'read'] as const)('ends the request when the turn is lost during %s', async (step) => {
    const { needs, owner, goOff, gate, closing, damage, digest } = await holdAt(step)
    damage('UPDATE uploads SET epoch = epoch + 1')

    goOff()
    gate.open()

    expect(await closing).toBe('upload-unknown')
    expect(await needs.metadata.blobs.find(owner, digest)).toBeUndefined()
  })

  test('ends the body of a request that waits for its sender when the turn is lost', async () => {
    const { clock, goOff } = heldTimers()
    const { needs, owner, id } = await openTurns(clock)
    const { readable, writable } = new TransformStream<Uint8Array>()
    const body = new ByteSource(readable, {
      bytesPerSecondMin: 1,
      windowMs: 60_000,
      tooSlow: () => new Error('too slow'),
      broken: (cause) => cause as Error,
    })
    const appending = errorOf(appendToUpload(needs, owner, id, { body, first: 0, lengthBytes: undefined }))
    await writable.getWriter().write(new Uint8Array(1))
    damageMetadata(needs.dataDir, 'UPDATE uploads SET epoch = epoch + 1')
    goOff()

    expect(await appending).toMatchObject({ refusal: 'upload-unknown' })
  })
})

describe('a closing request that is repeated while the first one is in a slow store', () => {
  test('waits for it and gets the same answer, and one with another digest is refused', async () => {
    const { needs, owner, id, gate, closing, digest } = await holdAt('complete')

    const repeated = finishUpload(needs, owner, id, digest, bodyOf())
    const other = finishUpload(needs, owner, id, digestOf('other bytes'), bodyOf())
    const appended = appendToUpload(needs, owner, id, bodyOf(whole))
    expect(await errorOf(other)).toMatchObject({ refusal: 'upload-busy' })
    expect(await errorOf(appended)).toMatchObject({ refusal: 'upload-busy' })
    gate.open()

    expect(await closing).toBe('closed')
    await repeated
    expect((await needs.metadata.blobs.find(owner, digest))?.sizeBytes).toBe(whole.length)
  })

  test('takes over when the first one fails', async () => {
    const { needs, owner, id, gate, closing, digest, fail } = await holdAt('complete')

    const repeated = finishUpload(needs, owner, id, digest, bodyOf())
    fail()
    gate.open()

    expect(await closing).toBeUndefined()
    await repeated
    expect((await needs.metadata.blobs.find(owner, digest))?.sizeBytes).toBe(whole.length)
  })
})

describe('of several requests that repeat a closing request', () => {
  /** A first request in a slow store, and one repeat that waits for it. */
  async function holdRepeat() {
    const held = await holdAt('complete')
    const { owner, id, digest, timers } = held
    let looks = 0
    const look = async () => {
      looks += 1
    }
    const needs = { ...held.needs, metadata: before(held.needs.metadata, 'uploads', 'find', look) }
    const repeat = async (signal = new AbortController().signal) => {
      const outcome = finishUpload(needs, owner, id, digest, { ...bodyOf(), signal }).then(
        () => 'closed',
        (error: unknown) => error,
      )
      const waits = until('it waits', () => timers.size === 2).then(() => 'waits')
      return { outcome, first: await Promise.race([outcome, waits]) }
    }
    const gone = new AbortController()
    const waiting = await repeat(gone.signal)
    expect(waiting.first).toBe('waits')
    return { ...held, needs, gone, waiting: waiting.outcome, repeat, looks: () => looks }
  }

  test('one waits, until its client has gone, and the others are refused', async () => {
    const { needs, owner, id, digest, gone, waiting, repeat, gate, closing } = await holdRepeat()
    const others = Array.from({ length: 10 }, () => errorOf(finishUpload(needs, owner, id, digest, bodyOf())))
    for (const other of await Promise.all(others)) expect(other).toMatchObject({ refusal: 'upload-busy' })

    gone.abort()
    expect(await waiting).toMatchObject({ refusal: 'body-incomplete' })

    const next = await repeat()
    expect(next.first).toBe('waits')
    gate.open()
    expect([await closing, await next.outcome]).toEqual(['closed', 'closed'])
  })

  test('the one that waits does not ask the metadata store, and is refused after five minutes', async () => {
    const { waiting, looks, time, goOff, gate, closing } = await holdRepeat()
    const looksBefore = looks()
    for (let passed = 0; passed < 299_500; passed += 500) {
      time.at += 500
      goOff()
    }
    expect(looks()).toBe(looksBefore)

    time.at += 500
    goOff()
    expect(await waiting).toMatchObject({ refusal: 'upload-busy' })
    gate.open()
    expect(await closing).toBe('closed')
  })

  test('none waits when the server stops', async () => {
    const { needs, waiting, repeat, gate, closing } = await holdRepeat()

    needs.writers.stopWaiting()

    expect(await waiting).toBeInstanceOf(Unavailable)
    expect((await repeat()).first).toBeInstanceOf(Unavailable)
    gate.open()
    expect(await closing).toBe('closed')
  })
})

describe("the machine's clock is set while a writer waits for its next byte", () => {
  /** What a second writer is told, when the first got a byte just now and the clock is set by as much. */
  async function secondWriter(clock: Clock, time: Time, setByMs: number): Promise<string> {
    const { needs, owner, id } = await openTurns(clock)
    const next = Promise.withResolvers<void>()
    const waiting = Promise.withResolvers<void>()
    const stopped = Promise.withResolvers<void>()
    async function* bytes(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(1)
      waiting.resolve()
      await next.promise
    }
    const cancel = (): void => {
      stopped.resolve()
      next.resolve()
    }
    const body = Object.assign(bytes(), { cancel })
    const first = appendToUpload(needs, owner, id, { body, first: 0, lengthBytes: undefined })
    await waiting.promise
    time.at += 500
    time.offMs += setByMs

    const second = appendToUpload(needs, owner, id, bodyOf(new Uint8Array(1))).then(
      (sizeBytes) => `it wrote up to ${sizeBytes}`,
      (error: unknown) => (error instanceof RegistryRefusal ? error.refusal : String(error)),
    )
    const told = await Promise.race([second, stopped.promise.then(() => 'the first one was stopped')])
    next.resolve()
    await Promise.all([first, second])
    return told
  }

  test.each([
    [1_000, clockOf, 'upload-busy'],
    [3_600_000, clockOf, 'upload-busy'],
    [-3_600_000, clockOf, 'upload-busy'],
    // The negative control: durations measured with a clock that can be set.
    [1_000, (time: Time) => ({ ...clockOf(time), steadyNow: clockOf(time).now }), 'the first one was stopped'],
  ])('by %d ms: a second writer finds the first one alive', async (setByMs, open, outcome) => {
    const time: Time = { at: 1_000, offMs: 1_700_000_000_000 }

    expect(await secondWriter(open(time), time, setByMs)).toBe(outcome)
  })
})
