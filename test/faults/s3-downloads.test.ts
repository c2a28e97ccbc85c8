// Pulls through the registry, with S3 behind it: what S3 is asked for, what of its faults a client sees, and what the
// clients cost that go away or do not read.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { peakMemoryBytes } from '../support/basics/process-memory.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { ask, checkBlob, pushBlob } from '../support/clients/registry-client.ts'
import { beginPull } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import type { S3StubRequest } from '../support/s3/s3-stub.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { type S3FaultProxy, startS3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'
import { openS3World, type S3World, tinyPlan } from '../support/s3-faults/s3-world.ts'
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

let proxy: S3FaultProxy
let world: S3World

beforeAll(async () => {
  proxy = await startS3FaultProxy(stub.url)
  const store = { attemptTimeoutMs: 2_000, triesMax: 3, requestsMax, queueMax: 50 }
  world = await openS3World({ server: stub, url: proxy.url, dataDir: temporaryFolder(), store })
  await pushBlob(world, repository, whole)
})
afterEach(() => proxy.clear())
afterAll(async () => {
  await world.stop()
  await proxy.stop()
  await stub.stop()
})

async function heardDuring(act: () => Promise<void>): Promise<readonly S3StubRequest[]> {
  const before = stub.requests().length
  await act()
  return stub.requests().slice(before)
}

describe('what S3 is asked for', () => {
  test('HEAD asks for nothing, and tells the length', async () => {
    const heard = await heardDuring(async () => {
      const answer = await ask(world, 'HEAD', path)
      expect([answer.status, answer.headers.get('content-length')]).toEqual([200, String(whole.length)])
    })

    expect(heard).toEqual([])
  })

  test('GET asks once, for all of it', async () => {
    const heard = await heardDuring(async () => {
      const answer = await ask(world, 'GET', path)
      // Bun leaves the length out of an answer whose body is a stream; then the last chunk tells its end.
      expect([null, String(whole.length)]).toContain(answer.headers.get('content-length'))
      expect(new Uint8Array(await answer.arrayBuffer())).toEqual(whole)
    })

    expect(heard.map(({ operation, headers }) => [operation, headers['range']])).toEqual([['GetObject', undefined]])
  })

  test('GET of a small one tells the length as well', async () => {
    const small = generatedBytes(200_000, 5)
    const answer = await ask(world, 'GET', `/v2/${repository}/blobs/${await pushBlob(world, repository, small)}`)

    expect(answer.headers.get('content-length')).toBe(String(small.length))
    expect(new Uint8Array(await answer.arrayBuffer())).toEqual(small)
  })

  test.each([
    ['bytes=100-299', 100, 300],
    ['bytes=4000000-', 4_000_000, whole.length],
    ['bytes=-5', whole.length - 5, whole.length],
  ])('Range: %s asks for these bytes alone', async (range, from, to) => {
    const heard = await heardDuring(async () => {
      const answer = await ask(world, 'GET', path, { headers: { range } })
      expect(answer.status).toBe(206)
      expect(answer.headers.get('content-length')).toBe(String(to - from))
      expect(new Uint8Array(await answer.arrayBuffer())).toEqual(whole.slice(from, to))
    })

    expect(heard.map(({ headers }) => headers['range'])).toEqual([`bytes=${from}-${to - 1}`])
  })

  test('If-None-Match and a range that is not there ask for nothing', async () => {
    const heard = await heardDuring(async () => {
      expect((await ask(world, 'GET', path, { headers: { 'if-none-match': `"${digest}"` } })).status).toBe(304)
      expect((await ask(world, 'GET', path, { headers: { range: 'bytes=9999999-' } })).status).toBe(416)
    })

    expect(heard).toEqual([])
  })
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

describe('clients that go away', () => {
  test('in the middle of an answer, 500 of them, leave no request to S3 behind', async () => {
    for (let round = 0; round < 50; round += 1) {
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
    for (const answer of held) expect(new Uint8Array(await answer.arrayBuffer())).toEqual(whole)
  })

  test('that do not read hold only their own slots, and further requests get 503', async () => {
    // More than the kernel keeps for a reader.
    const large = await pushBlob(world, repository, generatedBytes(24 * mebi, 4))
    const sockets = await Promise.all(
      Array.from({ length: downloadsMax }, () => beginPull(world, `/v2/${repository}/blobs/${large}`)),
    )
    for (const socket of sockets) await new Promise((resolve) => socket.once('readable', resolve))
    const refused = await ask(world, 'GET', path)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, expect.any(String)])
    // A push needs places as well, and has its own.
    await pushBlob(world, repository, generatedBytes(200_000, 2))
    for (const socket of sockets) socket.destroy()

    await until('a place is free', async () => (await checkBlob(world, repository, digest)) === 'whole')
  })
})

describe('memory', () => {
  test('does not grow with what slow readers leave unread', async () => {
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
})
