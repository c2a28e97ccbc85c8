// An upload that changes replica at every request, is cut, or loses the replica that wrote to it: the other goes on, and
// what comes out has the digest that it was closed with.
import { describe, expect } from 'bun:test'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import {
  ask,
  checkBlob,
  completeUpload,
  expectStatus,
  finish,
  openSession,
  patch,
  pushBlob,
  receivedBytes,
} from '../support/clients/registry-client.ts'
import { beginRequest } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { checkAtBoth, type Replica, startReplicas } from '../support/replicas/replicas.ts'
import { endTurns, sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { auditShared, listKeys } from '../support/replicas/shared-stores-audit.ts'
import { sharedS3 } from '../support/s3/test-s3.ts'
import { startS3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'

const mebi = 1024 * 1024
const repository = 'hops/app'
/** Breaks nothing here, but sees what is asked of S3. */
const watch = useRunning(async () => startS3FaultProxy((await sharedS3()).url), sharedStoresNeed)
const replicas = useRunning(() => startReplicas({ s3Url: watch.url }), sharedStoresNeed)
let serial = 0

const prove = (name: string, body: () => Promise<void>) => testNeeding(sharedStoresNeed, name, body)

function fresh(sizeBytes: number): Uint8Array<ArrayBuffer> {
  serial += 1
  return generatedBytes(sizeBytes, serial)
}

async function wholeAtBoth(bytes: Uint8Array, algorithm: 'sha256' | 'sha512' = 'sha256'): Promise<void> {
  expect(await checkAtBoth(replicas, repository, digestOf(bytes, algorithm))).toBe('whole')
}

/** Chunk by chunk, each at the next replica; gives the one whose turn is next. */
async function hop(session: string, bytes: Uint8Array, chunkBytes: number): Promise<Replica> {
  const { a, b } = replicas
  const order = [b, a]
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const chunk = bytes.subarray(at, at + chunkBytes)
    const answer = await expectStatus(202, patch(order[0] ?? a, session, chunk, at))
    expect(answer.headers.get('range')).toBe(`0-${at + chunk.length - 1}`)
    order.reverse()
  }
  return order[0] ?? a
}

describe('a new replica for each request', () => {
  /** Of the size, so many bytes are sent in chunks, and the rest in the PUT that closes the upload. */
  const ways = [
    ['in chunks of one byte', 1, 64, 64, 'sha256'],
    ['in chunks of 5000 bytes, the last of them beyond the limit of inline blobs', 5_000, 20_000, 20_000, 'sha256'],
    ['in chunks of 5 MiB', 5 * mebi, 23 * mebi, 23 * mebi, 'sha256'],
    ['in chunks of 5 MiB, closed with sha512', 5 * mebi, 12 * mebi, 12 * mebi, 'sha512'],
    ['in chunks of 3 MiB', 3 * mebi, 20 * mebi, 20 * mebi, 'sha256'],
    ['with the last chunk in the PUT', 3 * mebi, 10 * mebi, 6 * mebi, 'sha256'],
    ['with all of it in the PUT', 1, 9 * mebi, 0, 'sha256'],
  ] as const
  for (const [words, chunkBytes, sizeBytes, inChunksBytes, algorithm] of ways) {
    prove(words, async () => {
      const bytes = fresh(sizeBytes)
      const session = await openSession(replicas.a, repository)
      const closer = await hop(session, bytes.subarray(0, inChunksBytes), chunkBytes)
      await expectStatus(201, finish(closer, session, digestOf(bytes, algorithm), bytes.subarray(inChunksBytes)))
      await wholeAtBoth(bytes, algorithm)
    })
  }

  prove('and with another digest than that of the bytes: it is refused, and no blob', async () => {
    const bytes = fresh(1_000)
    const session = await openSession(replicas.a, repository)
    const closer = await hop(session, bytes, 300)
    const wrong = digestOf(fresh(1_000))
    expect((await finish(closer, session, wrong)).status).toBe(400)
    expect(await checkBlob(replicas.a, repository, wrong)).toBe('status 404')
  })
})

describe('inline blobs', () => {
  prove('are whole at both as soon as they are pushed, and need no object', async () => {
    const before = await listKeys(replicas.stores)
    for (const sizeBytes of [0, 1, 16_384]) {
      const bytes = fresh(sizeBytes)
      await pushBlob(replicas.a, repository, bytes)
      await wholeAtBoth(bytes)
    }
    expect(await listKeys(replicas.stores)).toEqual(before)
  })

  prove('that are uploaded forty times at once are stored once', async () => {
    const bytes = fresh(16_384)
    const digest = digestOf(bytes)
    const upload = async (at: number) => {
      const target = at % 2 === 0 ? replicas.a : replicas.b
      if (at % 4 < 2) return pushBlob(target, repository, bytes)
      return expectStatus(201, finish(target, await openSession(target, repository), digest, bytes))
    }
    await Promise.all(Array.from({ length: 40 }, (_, at) => upload(at)))

    expect(await replicas.stores.ask(`SELECT 1 FROM blobs WHERE digest = '${digest}'`)).toHaveLength(1)
    expect(await auditShared(replicas.stores)).toMatchObject({ faults: [], strays: [] })
  })
})

describe('what is read back from S3 when the replica that closes is not the one that wrote', () => {
  async function readsAtClose(sizeBytes: number, algorithm: 'sha256' | 'sha512'): Promise<number> {
    const bytes = fresh(sizeBytes)
    const session = await openSession(replicas.a, repository)
    for (let at = 0; at < bytes.length; at += 4 * mebi) {
      await expectStatus(202, patch(replicas.a, session, bytes.subarray(at, at + 4 * mebi), at))
    }
    watch.clear()
    await expectStatus(201, finish(replicas.b, session, digestOf(bytes, algorithm)))
    const reads = watch.seen().filter((operation) => operation === 'GetObject').length
    await wholeAtBoth(bytes, algorithm)
    return reads
  }

  prove('nothing, whether it is one object or many parts', async () => {
    expect([await readsAtClose(20_000, 'sha256'), await readsAtClose(16 * mebi, 'sha256')]).toEqual([0, 0])
  })

  prove('all of it, once, where it is closed with sha512, whose hash no replica has yet', async () => {
    expect([await readsAtClose(20_000, 'sha512'), await readsAtClose(16 * mebi, 'sha512')]).toEqual([1, 1])
  })

  prove('nothing of an inline upload, with any digest', async () => {
    expect([await readsAtClose(1_000, 'sha256'), await readsAtClose(1_000, 'sha512')]).toEqual([0, 0])
  })
})

/** A PATCH that has sent some of its bytes. */
async function beginPatch(replica: Replica, session: string, bytes: Uint8Array, sentBytes: number) {
  const request = await beginRequest(replica, 'PATCH', session, 'content-length', bytes.length)
  const claimed = `SELECT 1 FROM uploads WHERE id = '${session.split('/').at(-1)}' AND turn_until > 0`
  await until('it is being written', async () => (await replicas.stores.ask(claimed)).length > 0)
  await Promise.race([request.send(bytes.subarray(0, sentBytes)), Bun.sleep(1_000)])
  await Bun.sleep(100)
  return request
}

describe('a client that is gone in the middle of a PATCH', () => {
  for (const sizeBytes of [2_000, 12 * mebi]) {
    prove(`of ${sizeBytes} bytes on one replica goes on at the other, where it is told how far it came`, async () => {
      const bytes = fresh(sizeBytes + 10)
      const session = await openSession(replicas.a, repository)
      await expectStatus(202, patch(replicas.a, session, bytes.subarray(0, 10), 0))
      ;(await beginPatch(replicas.a, session, bytes.subarray(10), sizeBytes / 2)).vanish()

      await until('the bytes that came are noted', async () => (await receivedBytes(replicas.b, session)) > 10)
      await completeUpload(replicas.b, session, bytes)
      await wholeAtBoth(bytes)
    })
  }
})

describe('a replica that is killed', () => {
  prove('after each of some chunks: the other goes on where it was, and nothing is sent again', async () => {
    const bytes = fresh(12 * mebi)
    const session = await openSession(replicas.a, repository)
    const [dying, living] = [replicas.a, replicas.b]
    for (let at = 0; at < bytes.length; at += 4 * mebi) {
      await expectStatus(202, patch(dying, session, bytes.subarray(at, at + 2 * mebi), at))
      await dying.kill()
      expect(await receivedBytes(living, session)).toBe(at + 2 * mebi)
      await expectStatus(202, patch(living, session, bytes.subarray(at + 2 * mebi, at + 4 * mebi), at + 2 * mebi))
      await dying.start()
    }
    await expectStatus(201, finish(living, session, digestOf(bytes)))
    await wholeAtBoth(bytes)
    expect((await auditShared(replicas.stores)).faults).toEqual([])
  })

  for (const [when, sent] of [
    ['in its first piece', 1 * mebi],
    ['behind its first piece', 11 * mebi],
  ] as const) {
    prove(`in the middle of a PATCH, ${when}: what was acknowledged before stands, and the other goes on`, async () => {
      const bytes = fresh(16 * mebi)
      const session = await openSession(replicas.a, repository)
      await expectStatus(202, patch(replicas.a, session, bytes.subarray(0, mebi), 0))
      await beginPatch(replicas.a, session, bytes.subarray(mebi), sent)
      await replicas.a.kill()

      expect(await receivedBytes(replicas.b, session)).toBe(mebi)
      // While the turn of the dead writer lasts, no replica knows that it is dead.
      expect((await patch(replicas.b, session, bytes.subarray(mebi), mebi)).status).toBe(416)
      await endTurns(replicas.stores)
      await completeUpload(replicas.b, session, bytes)

      await replicas.a.start()
      await wholeAtBoth(bytes)
      expect((await auditShared(replicas.stores)).faults).toEqual([])
      expect((await ask(replicas.a, 'GET', session)).status).toBe(404)
    })
  }
})
