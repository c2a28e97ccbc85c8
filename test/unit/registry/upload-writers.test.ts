// What a process remembers of uploads between requests: the current writer, and which hash can be used.
import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { startHash } from '../../../src/lib/hashing.ts'
import type { Digest } from '../../../src/oci/digest.ts'
import type { StorageKey } from '../../../src/ports/blob-store.ts'
import type { Upload, UploadId } from '../../../src/ports/uploads.ts'
import { UploadWriters } from '../../../src/registry/upload-writers.ts'

const id = 'an upload' as UploadId

function openWriters() {
  const clock = { at: 1_000_000, steadyNow: () => clock.at, every: systemClock.every }
  return { clock, writers: new UploadWriters(clock) }
}

function uploadAt(epoch: number, sizeBytes: number): Upload {
  const repository = { accountId: 1, id: 1 }
  const object = { sizeBytes, notes: undefined }
  return { id, repository, storageKey: 'a key' as StorageKey, object, receivedDigest: undefined, epoch }
}

describe('a writer', () => {
  test('is let in when there is no other, and again when the other has ended', async () => {
    const { writers } = openWriters()
    const first = await writers.enter(id, () => undefined)
    first?.release()

    expect(first).toBeDefined()
    expect(await writers.enter(id, () => undefined)).toBeDefined()
  })

  test('is not let in while another is alive, and does not disturb it', async () => {
    const { writers, clock } = openWriters()
    let stops = 0
    const first = await writers.enter(id, () => {
      stops += 1
    })
    for (let seconds = 0; seconds < 5; seconds += 1) {
      clock.at += 900
      first?.markWaitingForClient()
    }

    expect(await writers.enter(id, () => undefined)).toBeUndefined()
    // However long the store takes, a writer that waits for it is alive.
    first?.markWaitingForStore()
    clock.at += 60_000
    expect(await writers.enter(id, () => undefined)).toBeUndefined()
    expect(stops).toBe(0)
  })

  test('stops one that looks dead, and is let in when that one has ended', async () => {
    const { writers, clock } = openWriters()
    const first = await writers.enter(id, () => setTimeout(() => first?.release(), 1))
    first?.markWaitingForClient()
    clock.at += 1_000

    expect(await writers.enter(id, () => undefined)).toBeDefined()
  })

  test('that closes the upload is found with its digest for as long as it is alive', async () => {
    const { writers, clock } = openWriters()
    const digest = 'sha256:a digest' as Digest
    const first = await writers.enter(id, () => undefined, digest)
    expect(writers.find(id)?.closing).toBe(digest)

    first?.markWaitingForClient()
    clock.at += 1_000
    expect(writers.find(id)).toMatchObject({ closing: undefined })

    first?.release()
    expect(writers.find(id)).toBeUndefined()
  })

  test('alone waits for a dead one: any other is refused at once', async () => {
    const { writers, clock } = openWriters()
    const first = await writers.enter(id, () => undefined)
    first?.markWaitingForClient()
    clock.at += 1_000

    const second = writers.enter(id, () => undefined)
    expect(await writers.enter(id, () => undefined)).toBeUndefined()

    first?.release()
    expect(await second).toBeDefined()
  })

  test('of one upload has nothing to do with that of another', async () => {
    const { writers } = openWriters()
    await writers.enter(id, () => undefined)

    expect(await writers.enter('another' as UploadId, () => undefined)).toBeDefined()
  })

  test('is stopped and waited for when all are', async () => {
    const { writers } = openWriters()
    const stopped: string[] = []
    for (const name of ['one', 'two'] as UploadId[]) {
      const entry = await writers.enter(name, () => {
        stopped.push(name)
        setTimeout(() => entry?.release(), 1)
      })
    }

    await writers.abortAll()

    expect(stopped).toEqual(['one', 'two'])
  })
})

describe('a kept hash', () => {
  function kept(epoch: number, sizeBytes: number) {
    const { writers } = openWriters()
    const hash = startHash('sha256')
    writers.keepHash(uploadAt(epoch, 0), sizeBytes, hash)
    return { writers, hash }
  }

  test('is taken by the turn right after the one that kept it, once', () => {
    const { writers, hash } = kept(3, 100)

    expect(writers.takeHash(uploadAt(4, 100))).toBe(hash)
    expect(writers.takeHash(uploadAt(4, 100))).toBeUndefined()
  })

  test.each([
    ['another writer came between', 5, 100],
    ['the turn is the same', 3, 100],
    ['more bytes stand', 4, 101],
    ['fewer bytes stand', 4, 99],
  ])('is of no use when %s', (_reason, epoch, sizeBytes) => {
    const { writers } = kept(3, 100)

    expect(writers.takeHash(uploadAt(epoch, sizeBytes))).toBeUndefined()
  })

  test('is forgotten with its upload, and when too many are kept', async () => {
    const { writers } = kept(3, 100)
    await writers.abort(id, 'a test')
    expect(writers.takeHash(uploadAt(4, 100))).toBeUndefined()

    writers.keepHash(uploadAt(3, 0), 100, startHash('sha256'))
    for (let count = 0; count < 2_000; count += 1) {
      writers.keepHash({ ...uploadAt(1, 0), id: `upload ${count}` as UploadId }, 1, startHash('sha256'))
    }
    expect(writers.takeHash(uploadAt(4, 100))).toBeUndefined()
  })
})
