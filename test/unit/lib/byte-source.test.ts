import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { ByteSource, freeChunk } from '../../../src/lib/byte-source.ts'
import { errorOf } from '../../support/basics/outcomes.ts'

const slow = new Error('too slow')
const windowMs = 1_000

class Broken extends Error {}

/** A source, and the hand that feeds it. At least 100 bytes a second are wanted. */
function feed() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const cancelled: unknown[] = []
  const stream = new ReadableStream<Uint8Array>({
    start: (own) => {
      controller = own
    },
    cancel: (reason) => void cancelled.push(reason),
  })
  const source = new ByteSource(stream, {
    bytesPerSecondMin: 100,
    windowMs,
    tooSlow: () => slow,
    broken: (cause) => new Broken('broken', { cause }),
  })
  return {
    source,
    cancelled,
    send: (bytes: number) => controller?.enqueue(new Uint8Array(bytes)),
    end: () => controller?.close(),
    fail: (error: Error) => controller?.error(error),
  }
}

async function drain(source: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0
  for await (const chunk of source) bytes += chunk.length
  return bytes
}

/** Lets promises that are due run, without a clock. */
async function settle(): Promise<void> {
  for (let round = 0; round < 20; round += 1) await Promise.resolve()
}

beforeEach(() => {
  jest.useFakeTimers()
})

afterEach(() => {
  jest.useRealTimers()
})

describe('a sender', () => {
  test('is read to its end, chunk by chunk', async () => {
    const { source, send, end } = feed()
    send(3)
    send(0)
    send(4)
    end()

    expect(await drain(source)).toBe(7)
  })

  test('that has no body sends nothing', async () => {
    const pace = { bytesPerSecondMin: 1, windowMs, tooSlow: () => slow, broken: () => slow }
    const source = new ByteSource(null, pace)
    source.cancel(new Error('this error is ignored'))

    expect(await drain(source)).toBe(0)
  })

  test('that goes away is told in our words, with the cause kept', async () => {
    const { source, send, fail } = feed()
    const cause = new Error('ECONNRESET')
    send(3)
    const reading = errorOf(drain(source))
    await settle()
    fail(cause)

    const error = await reading
    expect(error).toBeInstanceOf(Broken)
    expect((error as Error).cause).toBe(cause)
  })
})

test('a chunk is freed only if it is a whole buffer, and may be freed twice', () => {
  const chunks = [new Uint8Array(5), new Uint8Array(new ArrayBuffer(9), 0, 5)]
  for (const chunk of [...chunks, ...chunks]) freeChunk(chunk)

  expect(chunks.map(({ length }) => length)).toEqual([0, 5])
})

describe('whether nothing is left of a body', () => {
  test('is known once its end was read, and not before', async () => {
    const { source, send, end } = feed()
    send(3)
    end()
    const seen: boolean[] = []
    for await (const _chunk of source) seen.push(source.isDrained)

    expect([...seen, source.isDrained]).toEqual([false, true])
  })

  test('is denied of one that was called off, broke, or was never read', async () => {
    const [off, broken, unread] = [feed(), feed(), feed()]
    off.source.cancel(slow)
    broken.fail(new Error('gone'))
    await errorOf(drain(off.source))
    await errorOf(drain(broken.source))

    expect([off, broken, unread].map(({ source }) => source.isDrained)).toEqual([false, false, false])
  })
})

describe('the pace', () => {
  /** The bytes that arrive, and the time until the next ones, as a part of a window. */
  type Step = readonly [bytes: number, windows: number]
  const repeated = (times: number, ...step: Step): readonly Step[] => Array.from({ length: times }, () => step)

  test.each<[string, boolean, readonly Step[]]>([
    ['nothing for a window', true, [[0, 1]]],
    ['too few bytes, without a pause', true, repeated(10, 9, 0.1)],
    ['just enough bytes', false, repeated(50, 100, 1)],
    ['many bytes, and then nothing for a window', true, [...repeated(1, 100_000, 1), [0, 1]]],
  ])('a sender that sends %s is cut: %p', async (_, isCut, steps) => {
    const { source, send, end, cancelled } = feed()
    const reading = drain(source).catch((error: unknown) => error)
    await settle()
    for (const [bytes, windows] of steps) {
      if (bytes > 0) send(bytes)
      await settle()
      jest.advanceTimersByTime(windows * windowMs)
    }
    if (!isCut) end()

    expect(await reading).toBe(isCut ? slow : 5_000)
    expect(cancelled).toEqual(isCut ? [slow] : [])
  })

  test.each([0.85, 100])('no sender is cut because the store keeps it waiting for %d of a window', async (windows) => {
    const { source, send, end, cancelled } = feed()
    let bytes = 0
    const reading = (async () => {
      for await (const chunk of source) {
        bytes += chunk.length
        jest.advanceTimersByTime(windows * windowMs)
      }
    })()
    for (let round = 0; round < 5; round += 1) {
      send(1)
      await settle()
      jest.advanceTimersByTime(0.15 * windowMs)
    }
    end()
    await reading

    expect({ bytes, cancelled }).toEqual({ bytes: 5, cancelled: [] })
  })

  test('is not watched any more once the reading has ended, however it ended', async () => {
    const whole = feed()
    whole.end()
    await drain(whole.source)
    const left = feed()
    left.send(1)
    for await (const _chunk of left.source) break

    expect(jest.getTimerCount()).toBe(0)
  })
})

describe('a reading that is called off', () => {
  test('ends at once with the reason, and the sender is told', async () => {
    const { source, cancelled } = feed()
    const reading = errorOf(drain(source))
    await settle()
    const reason = new Error('another writer came')
    source.cancel(reason)

    expect(await reading).toBe(reason)
    expect(cancelled).toEqual([reason])
  })

  test('before it began ends with the first reason at the first chunk', async () => {
    const { source, send } = feed()
    send(5)
    const reason = new Error('too late')
    source.cancel(reason)
    source.cancel(new Error('second'))

    expect(await errorOf(drain(source))).toBe(reason)
  })
})
