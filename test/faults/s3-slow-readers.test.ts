// Readers that hardly read, as many as a server has places for downloads: what happens to other clients.
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import type { S3BlobStoreSettings } from '../../src/adapters/blobs-s3/s3-blob-store.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useRunning } from '../support/basics/running.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { ask, checkBlob, finish, openSession, pushBlob } from '../support/clients/registry-client.ts'
import { beginPull } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { openS3World, type S3World, tinyPlan } from '../support/s3-faults/s3-world.ts'

const kibi = 1024
const mebi = 1024 ** 2
const temporaryFolder = useTemporaryFolders('s3-slow-readers')
const stub = startS3Stub({ partBytesMin: tinyPlan.minBytes })
const repository = 'slow/app'
/** More than the kernel keeps for a reader. */
const large = generatedBytes(24 * mebi, 1)
const requestsMax = 8
const downloadsMax = 6
/** A reader that takes less than 4 MiB/s is slow here. */
const readerPace = { bytesPerSecondMin: 256 * kibi, windowMs: 300 }

const path = `/v2/${repository}/blobs/${digestOf(large)}`
const sockets: SlowReader[] = []

function useWorld(more: Partial<S3BlobStoreSettings>): S3World {
  return useRunning(async () => {
    const store = { attemptTimeoutMs: 1_500, requestsMax, queueMax: 50, ...more }
    const world = await openS3World({ server: stub, dataDir: temporaryFolder(), store })
    await pushBlob(world, repository, large)
    return world
  })
}
const guarded = useWorld({ readerPace, attemptTimeoutMs: 20_000 })
const unguarded = useWorld({})

afterEach(() => {
  for (const { socket } of sockets.splice(0)) socket.destroy()
})
afterAll(() => stub.stop())

interface SlowReader {
  readonly socket: Socket
  hasEnded: boolean
}

/** Takes the head of the answer and what the kernel takes by itself, and then no more. */
async function beginSlowly(world: S3World): Promise<SlowReader> {
  const socket = await beginPull(world, path)
  const reader = { socket, hasEnded: false }
  sockets.push(reader)
  socket.on('close', () => {
    reader.hasEnded = true
  })
  await new Promise((resolve) => socket.once('readable', resolve))
  const head: Buffer = socket.read() ?? Buffer.alloc(0)
  expect(head.toString('latin1', 0, 12)).toBe('HTTP/1.1 200')
  return reader
}

async function takeAllPlaces(world: S3World): Promise<SlowReader[]> {
  return Promise.all(Array.from({ length: downloadsMax }, () => beginSlowly(world)))
}

/** In a world in which no reader is disconnected. */
async function requireNoPlaceLeft(world: S3World): Promise<void> {
  expect((await ask(world, 'GET', path)).status).toBe(503)
}

/** Reads on, to the end of the answer or of the connection. */
async function readOn(reader: SlowReader): Promise<boolean> {
  let end = ''
  reader.socket.on('data', (bytes) => {
    end = (end + bytes.toString('latin1', Math.max(0, bytes.length - 5))).slice(-5)
  })
  reader.socket.resume()
  await until('the answer ends, or its connection', () => end === '0\r\n\r\n' || reader.hasEnded)
  return end === '0\r\n\r\n'
}

describe('while all places are held by readers that hardly read', () => {
  test.each([1, 1_000, 256 * kibi])('a body of %d bytes is served all the same', async (size) => {
    const bytes = generatedBytes(size, size)
    const digest = await pushBlob(unguarded, repository, bytes)
    await takeAllPlaces(unguarded)

    expect(await checkBlob(unguarded, repository, digest)).toBe('whole')
    // So it is with a part of a large one, and with the store's own notes.
    const part = await ask(unguarded, 'GET', path, { headers: { range: 'bytes=5-9' } })
    expect(new Uint8Array(await part.arrayBuffer())).toEqual(large.slice(5, 10))
    expect(await unguarded.blobs.claim('somebody', { mayBeNew: true })).toBe('somebody')
    // A slightly longer body needs a slot. All slots are held, and no reader is disconnected in this world.
    const longer = await pushBlob(unguarded, repository, generatedBytes(256 * kibi + 1, 7))
    expect((await ask(unguarded, 'GET', `/v2/${repository}/blobs/${longer}`)).status).toBe(503)
  })

  test('an upload is read back whose digest is of another kind than was counted on', async () => {
    const bytes = generatedBytes(600_000, 5)
    const session = await openSession(unguarded, repository)
    const { headers } = await ask(unguarded, 'PATCH', session, { body: bytes })
    await takeAllPlaces(unguarded)

    const finished = finish(unguarded, headers.get('location') ?? session, digestOf(bytes, 'sha512'))
    expect((await finished).status).toBe(201)
    await requireNoPlaceLeft(unguarded)
  })

  test('an upload goes on behind its tail', async () => {
    const bytes = generatedBytes(40_000, 3)
    let location = await openSession(unguarded, repository)
    await takeAllPlaces(unguarded)
    for (const chunk of [bytes.slice(0, 10_000), bytes.slice(10_000)]) {
      const answer = await ask(unguarded, 'PATCH', location, { body: chunk })
      expect(answer.status).toBe(202)
      location = answer.headers.get('location') ?? ''
    }
    await requireNoPlaceLeft(unguarded)
  })

  test('a large one is served as well where readers have to take something: the slowest of them is cut', async () => {
    const readers = await takeAllPlaces(guarded)
    const answer = await ask(guarded, 'GET', path)

    expect(answer.status).toBe(200)
    expect(new Uint8Array(await answer.arrayBuffer())).toEqual(large)
    // For one that came, one went; and it knows that it does not have all.
    const isWhole = await Promise.all(readers.map(readOn))
    expect(isWhole.filter((whole) => !whole)).toHaveLength(1)
  }, 60_000)
})
