// What a process remembers of uploads between requests: the current writer, and which hash can be used.
import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { startHash } from '../../../src/lib/hashing.ts'
import type { StorageKey } from '../../../src/ports/blob-store.ts'
import type { Upload, UploadId } from '../../../src/ports/uploads.ts'
import { UploadWriters } from '../../../src/registry/upload-writers.ts'

const id = 'an upload' as UploadId

function openWriters() {
  const clock = { at: 1_000_000, steadyNow: () => clock.at, every: systemClock.every }
  const writers = new UploadWriters(clock)
  return { clock, writers, enter: (of = id) => writers.enter(of, () => undefined) }
}

describe('a writer', () => {
  test('does not enter while another is alive, and does not abort it', async () => {
    const { writers, clock, enter } = openWriters()
    let aborts = 0
    const first = await writers.enter(id, () => {
      aborts += 1
    })
    for (let bytes = 0; bytes < 5; bytes += 1) {
      clock.at += 900
      first?.markWaitingForClient()
    }
    expect(await enter()).toBeUndefined()
    // However long the store takes, a writer that waits for it is alive.
    first?.markWaitingForStore()
    clock.at += 60_000

    expect([await enter(), aborts]).toEqual([undefined, 0])
  })

  test('aborts one that looks dead, waits alone for its end, and then enters; others are refused at once', async () => {
    const { writers, clock, enter } = openWriters()
    const aborted = Promise.withResolvers<void>()
    const first = await writers.enter(id, () => aborted.resolve())
    first?.markWaitingForClient()
    clock.at += 1_000

    const second = enter()
    await aborted.promise
    expect(await enter()).toBeUndefined()
    first?.release()

    expect(await second).toBeDefined()
  })
})

function uploadAt(epoch: number, sizeBytes: number, of = id): Upload {
  const object = { sizeBytes, notes: undefined }
  const repository = { accountId: 1, id: 1 }
  const storageKey = 'a key' as StorageKey
  return { id: of, repository, storageKey, object, receivedDigest: undefined, epoch, isUnclaimed: false }
}

/** The turns that the first and the second claim get, whether the other processes end a writer, and what comes of it. */
const claims: readonly (readonly [string, readonly (number | undefined)[], boolean, string[]])[] = [
  ['the first turn is claimed, and no other process is asked', [1], false, ['claimed 1']],
  ['the turn after an own one is claimed, and no other process is asked', [4], false, ['claimed 4']],
  ['a turn after another process is claimed once its writer has ended', [7], true, ['end', 'claimed 7']],
  [
    'a turn after another process is released if its writer has not ended',
    [7],
    false,
    ['end', 'released 7', 'refused'],
  ],
  [
    'a writer that looks dead is ended, and the turn is claimed',
    [undefined, 7],
    true,
    ['end dead', 'end', 'claimed 7'],
  ],
  ['a writer that is alive is left alone', [undefined, 7], false, ['end dead', 'refused']],
]

test.each(claims)('beside other processes, %s', async (_, epochs, isEnded, expected) => {
  const told: string[] = []
  const turns = [...epochs]
  const writers = new UploadWriters(systemClock, async (_id, onlyIfDead) => {
    told.push(onlyIfDead ? 'end dead' : 'end')
    return isEnded
  })
  writers.keepHash(uploadAt(3, 0), 100, startHash('sha256'))
  const claim = async () => {
    const epoch = turns.shift()
    return epoch === undefined ? undefined : uploadAt(epoch, 100)
  }
  const claimed = await writers.claimAlone(id, claim, async ({ epoch }) => void told.push(`released ${epoch}`))

  expect([...told, claimed === undefined ? 'refused' : `claimed ${claimed.epoch}`]).toEqual(expected)
})

describe('a kept hash', () => {
  test.each([
    ['the next turn takes it', 4, 100, true],
    ['another writer came between', 5, 100, false],
    ['the turn is the same', 3, 100, false],
    ['there are more bytes', 4, 101, false],
    ['there are fewer bytes', 4, 99, false],
  ])('is used once, and only right after the turn that kept it: %s', (_, epoch, sizeBytes, isUsed) => {
    const { writers } = openWriters()
    const hash = startHash('sha256')
    writers.keepHash(uploadAt(3, 0), 100, hash)

    expect(writers.takeHash(uploadAt(epoch, sizeBytes))).toBe(isUsed ? hash : (undefined as never))
    expect(writers.takeHash(uploadAt(4, 100))).toBeUndefined()
  })

  test('is removed with its upload, and when two thousand newer ones are kept', async () => {
    const { writers } = openWriters()
    const keepAndTake = async (meanwhile: () => unknown) => {
      writers.keepHash(uploadAt(3, 0), 100, startHash('sha256'))
      await meanwhile()
      return writers.takeHash(uploadAt(4, 100)) !== undefined
    }
    const keepOthers = (count: number) => () => {
      for (let other = 0; other < count; other += 1) {
        writers.keepHash(uploadAt(1, 0, `upload ${other}` as UploadId), 1, startHash('sha256'))
      }
    }
    expect(await keepAndTake(() => writers.abort(id, 'a test'))).toBe(false)
    expect([await keepAndTake(keepOthers(1_999)), await keepAndTake(keepOthers(2_000))]).toEqual([true, false])
  })
})
