// Two requests at one upload of one server: one wins, the other is told so. Forced interleavings of two replicas:
// test/replicas/upload-interleavings.test.ts.
import { describe, expect, test } from 'bun:test'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useRunning } from '../support/basics/running.ts'
import {
  ask,
  checkBlob,
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

test('a DELETE during a PATCH: the upload is gone, the PATCH is told so, and its bytes are in the trash', async () => {
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

test('after all that the stores are sound', async () => {
  expect(await auditStores(server.dataDir)).toEqual([])
})
