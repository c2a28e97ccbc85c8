// A sender that goes away, stops or trickles in the middle of a body: what came is kept or dropped, and the next request
// continues from there. A sender that is only slow is served. Two writers on two replicas: replicas/upload-interleavings.
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
  pushBlob,
  receivedBytes,
} from '../support/clients/registry-client.ts'
import { type BodyForm, beginRequest, type SlowRequest } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { startTestServer } from '../support/server/test-server.ts'
import { auditStores, countRows } from '../support/stores/store-audit.ts'

const repository = 'gone/app'
const came = 100_000
/** Long enough for the server to have read some of what it was sent. The rest is lost with the connection. */
const readingMs = 100
const forms: readonly BodyForm[] = ['content-length', 'chunked']

const server = useRunning(() => startTestServer({ BERTH_LIMITS__BODY_WINDOW: '1s', BERTH_SERVER__IDLE: '30s' }))

let seed = 0
function freshBytes(): Uint8Array {
  seed += 1
  return generatedBytes(300_000, seed)
}

/** Resolves once the session had `turns` writers and the last of them has released its turn. */
function untilTurnsEnded(session: string, turns: number): Promise<true> {
  const condition = `id = '${session.split('/').at(-1)}' AND epoch >= ${turns} AND turn_until = 0`
  return until<true>(`turn ${turns} is over`, () => countRows(server.dataDir, 'uploads', condition) === 1)
}

/** The row says that a turn has ended a moment before its process has: in between, a request is told that the upload is busy. */
function whenFree(send: () => Promise<Response>): Promise<Response> {
  return until('the process has ended the turn', async () => {
    const answer = await send()
    return answer.status === 416 ? undefined : answer
  })
}

/** How a body ends early, and whether the server has all bytes of it that were sent. */
const endings: Readonly<Record<string, readonly [(request: SlowRequest) => Promise<void>, hasAll: boolean]>> = {
  'goes away': [
    async (request) => {
      await Bun.sleep(readingMs)
      request.vanish()
    },
    false,
  ],
  'stops, and is told 408,': [async (request) => expect(await request.status()).toBe(408), true],
}

/** A request to a session, by the bytes that the session has before and those that come before the end. */
const requests = [
  { name: 'a PATCH', before: 0, sent: came, isClosing: false },
  { name: 'a PATCH before its first byte', before: 0, sent: 0, isClosing: false },
  { name: 'a second PATCH', before: came, sent: came, isClosing: false },
  { name: 'a closing PUT', before: came, sent: came, isClosing: true },
  { name: 'a PUT that was to bring all bytes', before: 0, sent: came, isClosing: true },
] as const

for (const [how, [end, hasAll]] of Object.entries(endings)) {
  describe.each(forms)(`a sender that ${how} in the middle of a body, %s`, (form) => {
    test.concurrent.each(requests)('$name: the session continues', async ({ before, sent, isClosing }) => {
      const bytes = freshBytes()
      const session = await openSession(server, repository)
      if (before > 0) await expectStatus(202, patch(server, session, bytes.subarray(0, before)))
      const [method, path] = isClosing ? ['PUT', `${session}?digest=${digestOf(bytes)}`] : ['PATCH', session]
      const request = await beginRequest(server, method, path, form, bytes.length - before)
      if (sent > 0) await request.send(bytes.subarray(before, before + sent))
      await end(request)
      await untilTurnsEnded(session, before > 0 ? 2 : 1)

      const received = await receivedBytes(server, session)
      if (isClosing) {
        expect(received).toBe(before)
        expect(await checkBlob(server, repository, digestOf(bytes))).toBe('status 404')
        const rest = bytes.subarray(before)
        await expectStatus(
          201,
          whenFree(() => finish(server, session, digestOf(bytes), rest)),
        )
      } else {
        expect(received).toBeGreaterThanOrEqual(hasAll ? before + sent : before + Math.min(sent, 1))
        expect(received).toBeLessThanOrEqual(before + sent)
        const more = bytes.subarray(received, 250_000)
        await expectStatus(
          202,
          whenFree(() => patch(server, session, more, received)),
        )
        await completeUpload(server, session, bytes)
      }
      expect(await checkBlob(server, repository, digestOf(bytes))).toBe('whole')
    })

    test.concurrent('a single POST: no session is left, and it can be sent again', async () => {
      const bytes = freshBytes()
      const own = `alone/${seed}`
      const path = `/v2/${own}/blobs/uploads/?digest=${digestOf(bytes)}`
      const request = await beginRequest(server, 'POST', path, form, bytes.length)
      await request.send(bytes.subarray(0, came))
      await end(request)

      const open = `done_digest IS NULL AND repository_id = (SELECT id FROM repositories WHERE name = '${own}')`
      await until('its session is gone', () => countRows(server.dataDir, 'uploads', open) === 0)
      expect(await checkBlob(server, own, digestOf(bytes))).toBe('status 404')
      await pushBlob(server, own, bytes)
      expect(await checkBlob(server, own, digestOf(bytes))).toBe('whole')
    })

    test.concurrent('a manifest: nothing is stored', async () => {
      const path = `/v2/${repository}/manifests/half`
      const request = await beginRequest(server, 'PUT', path, form, 100_000)
      await request.send(new TextEncoder().encode(`{"schemaVersion": 2, "padding": "${'x'.repeat(50_000)}`))
      await end(request)

      await expectStatus(404, ask(server, 'GET', path))
    })
  })
}

describe.each(forms)('a slow sender, %s', (form) => {
  test.concurrent('that trickles below the minimum rate is told 408, and the session keeps what came', async () => {
    const bytes = freshBytes()
    const session = await openSession(server, repository)
    const request = await beginRequest(server, 'PATCH', session, form, bytes.length)
    let isAnswered = false
    const status = request.status().finally(() => {
      isAnswered = true
    })
    let sent = 0
    for (; !isAnswered; sent += 10) {
      await request.send(bytes.subarray(sent, sent + 10))
      await Bun.sleep(50)
    }

    expect(await status).toBe(408)
    const received = await receivedBytes(server, session)
    expect(received).toBeGreaterThan(0)
    expect(received).toBeLessThanOrEqual(sent)
    await completeUpload(server, session, bytes)
  })

  test.concurrent('that stays above the minimum rate can send its whole body', async () => {
    const bytes = freshBytes().subarray(0, 60_000)
    const session = await openSession(server, repository)
    const request = await beginRequest(server, 'PATCH', session, form, bytes.length)
    for (let at = 0; at < bytes.length; at += 1_000) {
      await request.send(bytes.subarray(at, at + 1_000))
      await Bun.sleep(50)
    }
    if (form === 'chunked') await request.end()

    expect(await request.status()).toBe(202)
    expect(await receivedBytes(server, session)).toBe(bytes.length)
  })
})

/** A PATCH that has its turn and has sent these bytes. */
async function beginPatch(session: string, bytes: Uint8Array) {
  const request = await beginRequest(server, 'PATCH', session, 'content-length', bytes.length)
  const taken = `id = '${session.split('/').at(-1)}' AND turn_until > 0`
  await until('it has its turn', () => countRows(server.dataDir, 'uploads', taken) === 1)
  await request.send(bytes.subarray(0, came))
  return request
}

test('a PATCH that looks dead is replaced by the next one, which continues from there', async () => {
  const bytes = freshBytes()
  const session = await openSession(server, repository)
  const first = await beginPatch(session, bytes)

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

test('a DELETE during a PATCH: the upload is gone, the PATCH is told so, and its bytes are in the trash', async () => {
  const session = await openSession(server, repository)
  const writing = await beginPatch(session, freshBytes())
  const trashed = countRows(server.dataDir, 'trash')

  await expectStatus(204, ask(server, 'DELETE', session))

  expect([400, 404]).toContain(await writing.status())
  await expectStatus(404, ask(server, 'GET', session))
  await expectStatus(404, ask(server, 'DELETE', session))
  expect(countRows(server.dataDir, 'trash')).toBe(trashed + 1)
})

test('a client that goes away while its repeated closing PUT waits does not block the next request', async () => {
  const bytes = freshBytes()
  const session = await openSession(server, repository)
  const path = `${session}?digest=${digestOf(bytes)}`
  const begin = () => beginRequest(server, 'PUT', path, 'content-length', bytes.length)
  const first = await begin()
  // The first one is slow, but never looks dead.
  let sent = 0
  const trickle = setInterval(() => {
    sent += 500
    void first.send(bytes.subarray(sent - 500, sent))
  }, 50)
  const taken = `id = '${session.split('/').at(-1)}' AND turn_until > 0`
  await until('it has its turn', () => countRows(server.dataDir, 'uploads', taken) === 1)
  const beginUntilItWaits = () =>
    until('a repeated request waits', async () => {
      const request = await begin()
      await request.send(bytes)
      return (await Promise.race([request.status(), Bun.sleep(500)])) === undefined && request
    })

  const gone = await beginUntilItWaits()
  // One request waits in each worker. A further one is refused.
  const statuses: number[] = []
  await until('a repeated request is refused', async () => {
    const request = await begin()
    await request.send(bytes)
    void request.status().then((status) => statuses.push(status))
    await Bun.sleep(500)
    return statuses.includes(416)
  })
  gone.vanish()
  const next = await beginUntilItWaits()

  clearInterval(trickle)
  await first.send(bytes.subarray(sent))
  expect([await first.status(), await next.status()]).toEqual([201, 201])
})

test('after all that the stores are sound', async () => {
  expect(await auditStores(server.dataDir)).toEqual([])
})
