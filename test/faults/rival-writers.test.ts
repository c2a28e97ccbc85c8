// Two requests at one upload: one wins, the other is told so, and the bytes are right in the end.
import { describe, expect, test } from 'bun:test'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useRunning } from '../support/basics/running.ts'
import {
  ask,
  checkBlob,
  completeUpload,
  expectStatus,
  finish,
  openSession,
  patch,
  receivedBytes,
} from '../support/clients/registry-client.ts'
import { beginRequest } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { startTestServer } from '../support/server/test-server.ts'
import { auditStores, countRows } from '../support/stores/store-audit.ts'

const repository = 'rival/app'

let seed = 0
const server = useRunning(() => startTestServer())

function freshBytes(sizeBytes = 500_000): Uint8Array {
  seed += 1
  return generatedBytes(sizeBytes, seed)
}

/** A PATCH that has begun to write and goes on only when it is told to. */
async function beginPatch(session: string, bytes: Uint8Array, sent: number) {
  const request = await beginRequest(server, 'PATCH', session, 'content-length', bytes.length)
  const id = session.split('/').at(-1)
  await until('it has its turn', () => countRows(server.dataDir, 'uploads', `id = '${id}' AND turn_until > 0`) === 1)
  await request.send(bytes.subarray(0, sent))
  return request
}

/** Keeps a request alive in the eyes of the server: one that sends nothing for a second may be taken for dead. */
function dripFeed(request: { send(bytes: Uint8Array): Promise<void> }, bytes: Uint8Array, from: number) {
  let at = from
  const timer = setInterval(() => {
    void request.send(bytes.subarray(at, at + 1))
    at += 1
  }, 50)
  return () => {
    clearInterval(timer)
    return at
  }
}

describe('two PATCHes at once', () => {
  test('of different bytes, many times: never a mixture', async () => {
    for (let round = 0; round < 10; round += 1) {
      const [one, other] = [freshBytes(200_000), freshBytes(200_000)]
      const session = await openSession(server, repository)

      const answers = await Promise.all([patch(server, session, one, 0), patch(server, session, other, 0)])

      expect(answers.map((answer) => answer.status).toSorted()).toEqual([202, 416])
      const taken = answers[0]?.status === 202 ? one : other
      await expectStatus(201, finish(server, session, digestOf(taken)))
      expect(await checkBlob(server, repository, digestOf(taken))).toBe('whole')
    }
  })

  test('the second is refused while the first is alive, and the first is not disturbed', async () => {
    const bytes = freshBytes()
    const session = await openSession(server, repository)
    const first = await beginPatch(session, bytes, 1_000)
    const stopFeeding = dripFeed(first, bytes, 1_000)
    await Bun.sleep(1_500)

    expect((await patch(server, session, bytes, 0)).status).toBe(416)

    const sent = stopFeeding()
    await first.send(bytes.subarray(sent))
    expect(await first.status()).toBe(202)
    await completeUpload(server, session, bytes)
    expect(await checkBlob(server, repository, digestOf(bytes))).toBe('whole')
  })

  test('the second takes over when the first looks dead, and goes on behind what the first brought', async () => {
    const bytes = freshBytes()
    const session = await openSession(server, repository)
    const first = await beginPatch(session, bytes, 100_000)

    const answer = await until('the client that came back is accepted', async () => {
      const received = await receivedBytes(server, session)
      const attempt = await patch(server, session, bytes.subarray(received), received)
      return attempt.status === 202 ? attempt : undefined
    })

    expect(answer.headers.get('range')).toBe(`0-${bytes.length - 1}`)
    first.vanish()
    await expectStatus(201, finish(server, session, digestOf(bytes)))
    expect(await checkBlob(server, repository, digestOf(bytes))).toBe('whole')
  })
})

describe('a PATCH and a PUT at once', () => {
  test('whichever wins, a blob is either right or not there', async () => {
    for (let round = 0; round < 10; round += 1) {
      const [whole, more] = [freshBytes(100_000), freshBytes(1_000)]
      const session = await openSession(server, repository)
      await expectStatus(202, patch(server, session, whole))

      const [closing, patching] = await Promise.all([
        finish(server, session, digestOf(whole)),
        patch(server, session, more),
      ])

      expect([201, 400, 404, 416]).toContain(closing.status)
      expect([202, 404, 416]).toContain(patching.status)
      const state = await checkBlob(server, repository, digestOf(whole))
      expect(state).toBe(closing.status === 201 ? 'whole' : 'status 404')
    }
  })
})

describe('a PATCH and a DELETE at once', () => {
  test('the upload is gone, the PATCH is told so, and its bytes are in the trash', async () => {
    const bytes = freshBytes()
    const session = await openSession(server, repository)
    const writing = await beginPatch(session, bytes, 100_000)
    const trashed = countRows(server.dataDir, 'trash')

    await expectStatus(204, ask(server, 'DELETE', session))

    expect([400, 404]).toContain(await writing.status())
    await expectStatus(404, ask(server, 'GET', session))
    await expectStatus(404, ask(server, 'DELETE', session))
    expect(countRows(server.dataDir, 'trash')).toBe(trashed + 1)
  })
})

describe('two PUTs at once', () => {
  test('of different digests: the right one or none, and never the wrong one', async () => {
    const [bytes, wrong] = [freshBytes(), freshBytes(10)]
    const session = await openSession(server, repository)
    await expectStatus(202, patch(server, session, bytes))

    await Promise.all([finish(server, session, digestOf(bytes)), finish(server, session, digestOf(wrong))])

    expect(await checkBlob(server, repository, digestOf(wrong))).toBe('status 404')
    expect(['whole', 'status 404']).toContain(await checkBlob(server, repository, digestOf(bytes)))
  })
})

test('after all that the stores are sound', async () => {
  expect(await auditStores(server.dataDir)).toEqual([])
})
