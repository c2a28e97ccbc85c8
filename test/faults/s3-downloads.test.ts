// Pulls through the registry, with S3 behind it: what S3 is asked for, what of its faults a client sees, and what clients
// cost that go away or read slowly. Clients that hold all places: s3-slow-readers.test.ts.
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { peakMemoryBytes } from '../support/basics/process-memory.ts'
import { useRunning } from '../support/basics/running.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { ask, checkBlob, pushBlob } from '../support/clients/registry-client.ts'
import { beginPull } from '../support/clients/slow-request.ts'
import type { S3StubRequest } from '../support/s3/s3-stub.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { startS3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'
import { openS3World, tinyPlan } from '../support/s3-faults/s3-world.ts'
import { startBerth } from '../support/server/berth-process.ts'
import { s3Variables } from '../support/stores/test-stores.ts'

const mebi = 1024 ** 2
const temporaryFolder = useTemporaryFolders('s3-downloads')
const stub = startS3Stub({ partBytesMin: tinyPlan.minBytes })
const repository = 'downloads/app'
const whole = generatedBytes(4 * mebi, 1)
const digest = digestOf(whole)
const path = `/v2/${repository}/blobs/${digest}`
/** Three quarters of the requests are for downloads. */
const requestsMax = 8
const downloadsMax = 6

const proxy = useRunning(() => startS3FaultProxy(stub.url))
const world = useRunning(async () => {
  const store = { attemptTimeoutMs: 2_000, triesMax: 3, requestsMax, queueMax: 50 }
  const opened = await openS3World({ server: stub, url: proxy.url, dataDir: temporaryFolder(), store })
  await pushBlob(opened, repository, whole)
  return opened
})
afterEach(() => proxy.clear())
afterAll(() => stub.stop())

async function heardDuring(act: () => Promise<void>): Promise<readonly S3StubRequest[]> {
  const before = stub.requests().length
  await act()
  return stub.requests().slice(before)
}

const length = whole.length
/** A request for the blob, its status, the bytes that come, and the ranges of the requests to S3. */
const requests = [
  ['HEAD', {}, 200, [0, 0], []],
  ['GET', {}, 200, [0, length], [undefined]],
  ['GET', { range: 'bytes=100-299' }, 206, [100, 300], ['bytes=100-299']],
  ['GET', { range: 'bytes=4000000-' }, 206, [4_000_000, length], [`bytes=4000000-${length - 1}`]],
  ['GET', { range: 'bytes=-5' }, 206, [length - 5, length], [`bytes=${length - 5}-${length - 1}`]],
  ['GET', { range: 'bytes=9999999-' }, 416, undefined, []],
  ['GET', { 'if-none-match': `"${digest}"` }, 304, undefined, []],
] as const

test.each(requests)(
  '%s with %j asks S3 for these bytes alone, and once',
  async (method, headers, status, bytes, asked) => {
    const heard = await heardDuring(async () => {
      const answer = await ask(world, method, path, { headers })
      const body = await answer.bytes()
      expect(answer.status).toBe(status)
      if (bytes === undefined) return
      expect(body).toEqual(whole.slice(...bytes))
      const announced = answer.headers.get('content-length')
      // Bun leaves the length out of an answer whose body is a stream; then the last chunk tells its end.
      if (method === 'HEAD') expect(announced).toBe(String(length))
      else expect([status === 200 ? null : '', String(bytes[1] - bytes[0])]).toContain(announced)
    })

    expect(heard.map((request) => [request.operation, request.headers['range']])).toEqual(
      asked.map((range) => ['GetObject', range]),
    )
  },
)

test('GET of a small one tells the length as well', async () => {
  const small = generatedBytes(200_000, 5)
  const answer = await ask(world, 'GET', `/v2/${repository}/blobs/${await pushBlob(world, repository, small)}`)

  expect(answer.headers.get('content-length')).toBe(String(small.length))
  expect(await answer.bytes()).toEqual(small)
})

describe('an answer of S3 that breaks off', () => {
  test.each([
    ['reset mid-response-body', 1],
    ['reset mid-response-body', 3 * mebi],
    ['end mid-response-body', 1],
    ['end mid-response-body', 100_000],
    ['end mid-response-body', 3 * mebi],
  ] as const)('%s, after %d bytes, is taken up, and the client sees nothing', async (fault, at) => {
    const broken = proxy.inject({ fault, operation: 'GetObject', afterBytes: at, occurrence: 1 })
    const heard = await heardDuring(async () => expect(await checkBlob(world, repository, digest)).toBe('whole'))

    expect([broken.hits(), heard.length]).toEqual([1, 2])
    // Of what was on its way Bun gives nothing away once it knows how it ends; of megabytes, some came before.
    const [, from = '0'] = /^bytes=(\d+)-4194303$/.exec(heard[1]?.headers['range'] ?? '') ?? []
    expect(Number(from)).toBeLessThanOrEqual(at)
    if (fault === 'end mid-response-body' && at > mebi) expect(Number(from)).toBeGreaterThan(0)
  })

  test('again and again is a 503 where nothing of it was given out yet', async () => {
    const small = await pushBlob(world, repository, generatedBytes(200_000, 5))
    proxy.inject({ fault: 'end mid-response-body', operation: 'GetObject' })
    const answer = await ask(world, 'GET', `/v2/${repository}/blobs/${small}`)

    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.any(String)])
  })

  test('again and again breaks the connection, so that no client takes a part for the whole blob', async () => {
    proxy.inject({ fault: 'end mid-response-body', operation: 'GetObject', afterBytes: 1_000_000, occurrence: 1 })
    proxy.inject({ fault: '500', operation: 'GetObject', occurrence: [2, 3, 4, 5] })
    const socket = await beginPull(world, path)
    let received = ''
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1')
    })
    socket.resume()
    await new Promise((resolve) => socket.once('close', resolve))

    expect(received.startsWith('HTTP/1.1 200')).toBe(true)
    expect(received.length).toBeLessThan(whole.length)
    expect(received.endsWith('0\r\n\r\n')).toBe(false)
    expect(await checkBlob(world, repository, digest)).toBe('whole')
  })
})

test('clients that go away in the middle of an answer leave no request to S3 behind', async () => {
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        const socket = await beginPull(world, path)
        if (index % 2 === 0) await new Promise((resolve) => socket.once('readable', resolve))
        socket.destroy()
      }),
    )
  }

  // As many as there are places, at once: each of them is free.
  const held = await Promise.all(Array.from({ length: downloadsMax }, () => ask(world, 'GET', path)))
  expect(held.map((answer) => answer.status)).toEqual(held.map(() => 200))
  for (const answer of held) expect(await answer.bytes()).toEqual(whole)
})

test('memory does not grow with what slow readers leave unread', async () => {
  const dataDir = temporaryFolder()
  const berth = await startBerth({ dataDir, settings: s3Variables(stub, 'memory/') })
  const large = await pushBlob(berth, repository, generatedBytes(32 * mebi, 3))
  expect(await checkBlob(berth, repository, large)).toBe('whole')
  const before = peakMemoryBytes(berth.pid)
  const sockets: Socket[] = []
  for (let reader = 0; reader < 12; reader += 1) {
    const socket = await beginPull(berth, `/v2/${repository}/blobs/${large}`)
    await new Promise((resolve) => socket.once('readable', resolve))
    sockets.push(socket)
  }
  // A second, complete pull gives a reader that reads ahead the time to do so.
  expect(await checkBlob(berth, repository, large)).toBe('whole')
  const grown = peakMemoryBytes(berth.pid) - before
  for (const socket of sockets) socket.destroy()
  await berth.stop()

  expect(grown).toBeLessThan(100 * mebi)
})
