// A client that goes away in the middle of a body: what came is kept or dropped, and the status tells which.
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
import { type BodyForm, beginRequest } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { startTestServer } from '../support/server/test-server.ts'
import { auditStores, countRows } from '../support/stores/store-audit.ts'

const repository = 'gone/app'
const whole = generatedBytes(1_000_000, 3)
const came = 400_000
/** Long enough for the server to have read some of what it was sent; what it had not read is lost with the connection. */
const readingMs = 100
const forms: BodyForm[] = ['content-length', 'chunked']

const server = useRunning(() => startTestServer())

/** Resolves once the session had `turns` writers and the last of them gave its turn back. */
function untilTurnsEnded(session: string, turns: number): Promise<true> {
  const id = session.split('/').at(-1)
  const condition = `id = '${id}' AND epoch >= ${turns} AND turn_until = 0`
  return until<true>(`turn ${turns} is over`, () => countRows(server.dataDir, 'uploads', condition) === 1)
}

describe.each(forms)('a client that goes away in the middle of a body, %s', (form) => {
  test('of a PATCH: the status tells what came, and the upload goes on from there', async () => {
    const session = await openSession(server, repository)
    const request = await beginRequest(server, 'PATCH', session, form, whole.length)
    await request.send(whole.subarray(0, came))
    await Bun.sleep(readingMs)
    request.vanish()

    await untilTurnsEnded(session, 1)
    const received = await receivedBytes(server, session)
    expect(received).toBeGreaterThan(0)
    expect(received).toBeLessThanOrEqual(came)
    await expectStatus(202, patch(server, session, whole.subarray(received, 700_000), received))
    await completeUpload(server, session, whole)

    expect(await checkBlob(server, repository, digestOf(whole))).toBe('whole')
  })

  test('of a second PATCH: what stood before stands, and what came is behind it', async () => {
    const session = await openSession(server, repository)
    await expectStatus(202, patch(server, session, whole.subarray(0, came)))
    const request = await beginRequest(server, 'PATCH', session, form, whole.length - came)
    await request.send(whole.subarray(came, 2 * came))
    await Bun.sleep(readingMs)
    request.vanish()

    await untilTurnsEnded(session, 2)
    const received = await receivedBytes(server, session)
    expect(received).toBeGreaterThan(came)
    expect(received).toBeLessThanOrEqual(2 * came)
    await completeUpload(server, session, whole)

    expect(await checkBlob(server, repository, digestOf(whole))).toBe('whole')
  })

  test('of a closing PUT: the session stands where it stood, and closes when it is asked again', async () => {
    const bytes = generatedBytes(1_000_000, form === 'chunked' ? 4 : 5)
    const session = await openSession(server, repository)
    await expectStatus(202, patch(server, session, bytes.subarray(0, came)))
    const path = `${session}?digest=${digestOf(bytes)}`
    const request = await beginRequest(server, 'PUT', path, form, bytes.length - came)
    await request.send(bytes.subarray(came, 2 * came))
    request.vanish()
    await untilTurnsEnded(session, 2)

    expect(await receivedBytes(server, session)).toBe(came)
    expect(await checkBlob(server, repository, digestOf(bytes))).toBe('status 404')
    await expectStatus(201, finish(server, session, digestOf(bytes), bytes.subarray(came)))

    expect(await checkBlob(server, repository, digestOf(bytes))).toBe('whole')
  })

  test('of a PUT that was to bring all of it: the session is empty, and accepts all bytes again', async () => {
    const bytes = generatedBytes(600_000, form === 'chunked' ? 6 : 7)
    const session = await openSession(server, repository)
    const request = await beginRequest(server, 'PUT', `${session}?digest=${digestOf(bytes)}`, form, bytes.length)
    await request.send(bytes.subarray(0, came))
    request.vanish()
    await untilTurnsEnded(session, 1)

    expect(await receivedBytes(server, session)).toBe(0)
    await completeUpload(server, session, bytes)

    expect(await checkBlob(server, repository, digestOf(bytes))).toBe('whole')
  })

  test('of a single POST: nothing is left but trash, and it can be sent again', async () => {
    const bytes = generatedBytes(600_000, form === 'chunked' ? 8 : 9)
    const open = countRows(server.dataDir, 'uploads', 'done_digest IS NULL')
    const trashed = countRows(server.dataDir, 'trash')
    const path = `/v2/${repository}/blobs/uploads/?digest=${digestOf(bytes)}`
    const request = await beginRequest(server, 'POST', path, form, bytes.length)
    await request.send(bytes.subarray(0, came))
    request.vanish()
    await until('its bytes are in the trash', () => countRows(server.dataDir, 'trash') > trashed)

    expect(countRows(server.dataDir, 'uploads', 'done_digest IS NULL')).toBe(open)
    expect(await checkBlob(server, repository, digestOf(bytes))).toBe('status 404')
    await pushBlob(server, repository, bytes)

    expect(await checkBlob(server, repository, digestOf(bytes))).toBe('whole')
  })

  test('of a manifest: nothing is stored', async () => {
    const body = new TextEncoder().encode(JSON.stringify({ schemaVersion: 2, padding: 'x'.repeat(100_000) }))
    const request = await beginRequest(server, 'PUT', `/v2/${repository}/manifests/half`, form, body.length)
    await request.send(body.subarray(0, 50_000))
    request.vanish()

    await expectStatus(404, ask(server, 'GET', `/v2/${repository}/manifests/half`))
  })
})

test('a client that goes away while its repeated closing PUT waits does not block the next request', async () => {
  const bytes = generatedBytes(10_000, 10)
  const session = await openSession(server, repository)
  const path = `${session}?digest=${digestOf(bytes)}`
  const begin = () => beginRequest(server, 'PUT', path, 'content-length', bytes.length)
  const first = await begin()
  // The first one is slow, and never looks dead.
  let sent = 0
  const trickle = setInterval(() => void first.send(bytes.subarray(sent, ++sent)), 50)
  const taken = `id = '${session.split('/').at(-1)}' AND turn_until > 0`
  await until('it has its turn', () => countRows(server.dataDir, 'uploads', taken) === 1)
  const beginUntilItWaits = () =>
    until('a repeated request waits', async () => {
      const request = await begin()
      await request.send(bytes)
      return (await Promise.race([request.status(), Bun.sleep(500)])) === undefined && request
    })

  const gone = await beginUntilItWaits()
  const other = await begin()
  await other.send(bytes)
  expect(await other.status()).toBe(416)
  gone.vanish()
  const next = await beginUntilItWaits()

  clearInterval(trickle)
  await first.send(bytes.subarray(sent))
  expect([await first.status(), await next.status()]).toEqual([201, 201])
})

test('after all that the stores are sound', async () => {
  expect(await auditStores(server.dataDir)).toEqual([])
})
