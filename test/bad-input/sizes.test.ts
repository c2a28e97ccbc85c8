import { beforeAll, describe, expect, test } from 'bun:test'
import { ociManifest } from '../../src/oci/media-types.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { peakMemoryBytes } from '../support/basics/process-memory.ts'
import { useRunning } from '../support/basics/running.ts'
import { testApiKey } from '../support/basics/test-project.ts'
import { sendRaw } from '../support/clients/raw-socket.ts'
import { startBerth } from '../support/server/berth-process.ts'
import {
  GuardedServer,
  imageText,
  type RequestBody,
  repository,
  verdictOf,
  verdictOfRaw,
} from '../support/server/guarded-server.ts'
import { basic } from '../support/server/test-server.ts'

const guard = new GuardedServer()
const kibibyte = 1_024
const mebibyte = kibibyte * kibibyte
const manifestMax = 4 * mebibyte

describe('a block of headers', () => {
  const withHeader = (bytes: number) => guard.ask('GET', '/v2/_catalog', [`X-Padding: ${'a'.repeat(bytes)}`])

  test.each([
    [15, 200],
    [17, 431],
    [64, 431],
    [1_024, 431],
  ])('of %p KiB is %p, in one line', async (size, status) => {
    expect((await withHeader(size * kibibyte)).statuses).toEqual([status])
  })

  test('of a thousand lines is 431', async () => {
    const lines = Array.from({ length: 1_000 }, (_, at) => `X-${at}: a`)
    expect((await guard.ask('GET', '/v2/_catalog', lines)).statuses).toEqual([431])
  })

  test('that never ends is cut without being kept', async () => {
    const pieces = Array.from({ length: 64 }, (_, at) => `X-${at}: ${'a'.repeat(kibibyte)}\r\n`)
    expect((await sendRaw(guard.port, 'GET /v2/ HTTP/1.1\r\nHost: h\r\n', ...pieces)).statuses).toEqual([431])
  })
})

describe('an address', () => {
  const ofLength = (length: number) => `/v2/_catalog?last=${'a'.repeat(length - '/v2/_catalog?last='.length)}`

  test.each([
    ['of nearly 8 KiB', 8_100, 200],
    ['of more than 8 KiB', 8_200, 414],
    ['of almost the limit of headers', 12_000, 414],
    ['that alone is more than the block of headers may be', 20_000, 431],
    ['that is ten times as long', 200_000, 431],
  ])('%s (%p bytes) is %p', async (_what, length, status) => {
    const answer = await guard.ask('GET', ofLength(length))
    expect(answer.statuses).toEqual([status])
    if (status === 414) expect(verdictOfRaw(answer)).toBe('414 UNSUPPORTED')
  })

  test('with thousands of parameters is read or refused', async () => {
    const { statuses } = await guard.ask('GET', `/v2/_catalog?${'a&'.repeat(3_500)}`)
    expect(statuses).toEqual([200])
  })
})

describe('a manifest', () => {
  /** A good one of exactly this many bytes. */
  function ofSize(bytes: number): string {
    const empty = imageText({ annotations: { padding: '' } })
    return imageText({ annotations: { padding: 'x'.repeat(bytes - empty.length) } })
  }
  const path = `/v2/${repository}-large/manifests/size`
  const chunked = (text: string) =>
    new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < text.length; at += 100_000) controller.enqueue(Buffer.from(text.slice(at, at + 100_000)))
        controller.close()
      },
    })
  const put = (body: RequestBody) =>
    guard.fetch(path, { method: 'PUT', body, headers: { 'content-type': ociManifest } }).then(verdictOf)

  test.each([
    // A good one is refused for its content, which is in another repository.
    ['of exactly the limit', manifestMax, '400 MANIFEST_BLOB_UNKNOWN'],
    ['of one byte more', manifestMax + 1, '413 SIZE_INVALID'],
  ])('%s (%p bytes) is %p, told its length or not', async (_what, bytes, expected) => {
    expect(ofSize(bytes).length).toBe(bytes)
    expect([await put(ofSize(bytes)), await put(chunked(ofSize(bytes)))]).toEqual([expected, expected])
  })

  test('that is announced as larger is 413 before a byte of it is sent', async () => {
    const lines = ['Connection: close', `Content-Type: ${ociManifest}`, `Content-Length: ${manifestMax + 1}`]
    expect(verdictOfRaw(await sendRaw(guard.port, guard.request('PUT', path, lines)))).toBe('413 SIZE_INVALID')
  })

  test('of nothing is refused', async () => {
    expect(await put('')).toBe('400 MANIFEST_INVALID')
    const lines = ['Connection: close', `Content-Type: ${ociManifest}`]
    expect(verdictOfRaw(await sendRaw(guard.port, guard.request('PUT', path, lines)))).toBe('400 MANIFEST_INVALID')
  })
})

// In a process of its own: Bun has one limit of headers for a whole process, and memory is measured from outside.
const limits = { BERTH_LIMITS__HEADER_BYTES: '32KiB', BERTH_LIMITS__BLOB_BYTES: '8MiB' }
const berth = useRunning(() => startBerth({ settings: limits }))

test.each([
  [20, 200],
  [30, 200],
  [33, 431],
  [100, 431],
])('with a limit of 32 KiB, headers of %p KiB are answered %p', async (size, status) => {
  const answer = await fetch(`${berth.url}/healthz`, { headers: { 'x-padding': 'a'.repeat(size * 1024) } })
  expect(answer.status).toBe(status)
})

// Bodies that are refused. The answer has to arrive though the client is still sending, and the server must not keep what
// it will not use.
const bodyBytes = 96 * mebibyte
const growthMax = 40 * mebibyte
const timeoutMs = 60_000
const whole = new Uint8Array(bodyBytes).fill(0x20)
const authorization = basic('apikey', testApiKey)

let beforeBytes = 0

beforeAll(async () => {
  // Once through everything, so that what is loaded at first use is loaded.
  expect((await kept('PUT')).status).toBe(201)
  beforeBytes = peakMemoryBytes(berth.pid)
})

function kept(method: 'GET' | 'PUT'): Promise<Response> {
  const body = 'worth keeping'
  const headers = { authorization }
  const at = `${berth.url}/v2/kept/app/blobs/`
  return method === 'GET'
    ? fetch(at + digestOf(body), { headers })
    : fetch(`${at}uploads/?digest=${digestOf(body)}`, { method: 'POST', body, headers })
}

type Length = 'told' | 'chunked'

/** The same bytes, as one piece or as a stream of unknown length. */
function bodyOf(length: Length): RequestBody {
  if (length === 'told') return whole
  let at = 0
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bodyBytes) controller.close()
      else controller.enqueue(whole.subarray(at, at + mebibyte))
      at += mebibyte
    },
  })
}

/** The status that comes back, and how much the process has grown since nothing large was sent to it. */
async function refuse(method: string, target: string, headers: Readonly<Record<string, string>>, length: Length) {
  const answer = await fetch(berth.url + target, { method, headers, body: bodyOf(length) })
  await answer.arrayBuffer()
  return { status: answer.status, grewBytes: peakMemoryBytes(berth.pid) - beforeBytes }
}

const known = { authorization }
const digest = `sha256:${'0'.repeat(64)}`
const cases: readonly (readonly [string, number, string, string, Readonly<Record<string, string>>])[] = [
  ['of an anonymous caller', 401, 'POST', `/v2/a/blobs/uploads/?digest=${digest}`, {}],
  ['to no route', 404, 'PUT', '/v2/a', known],
  ['by a method that is not for the path', 405, 'PUT', '/v2/_catalog', known],
  ['for a bad name', 400, 'POST', `/v2/Bad/blobs/uploads/?digest=${digest}`, known],
  ['for a bad digest', 400, 'POST', '/v2/a/blobs/uploads/?digest=x', known],
  ['to no session', 404, 'PATCH', '/v2/a/blobs/uploads/01234567-89ab-4def-8123-456789abcdef', known],
  ['that is encoded', 415, 'POST', `/v2/a/blobs/uploads/?digest=${digest}`, { ...known, 'content-encoding': 'gzip' }],
  ['as a manifest', 413, 'PUT', '/v2/a/manifests/x', { ...known, 'content-type': ociManifest }],
  ['as a blob beyond the limit', 413, 'POST', `/v2/a/blobs/uploads/?digest=${digest}`, known],
  ['as a login', 400, 'POST', '/api/2021-02-21/token/auth', { 'content-type': 'application/json' }],
]

describe.each(['told', 'chunked'] as const)('a large body, its length %s', (length) => {
  test.each(cases)(
    '%s is answered, and not kept',
    async (_what, expected, method, target, headers) => {
      const { status, grewBytes } = await refuse(method, target, headers, length)

      expect(status).toBe(expected)
      expect(grewBytes).toBeLessThan(growthMax)
    },
    timeoutMs,
  )

  test('loses nothing', async () => {
    expect(await (await kept('GET')).text()).toBe('worth keeping')
    expect((await fetch(`${berth.url}/readyz`)).status).toBe(200)
  })
})

test(
  'twenty large manifests at once are refused, and none of them is kept',
  async () => {
    const headers = { ...known, 'content-type': ociManifest }
    const statuses = await Promise.all(
      Array.from({ length: 20 }, () =>
        refuse('PUT', '/v2/a/manifests/x', headers, 'chunked').then(({ status }) => status),
      ),
    )

    expect(new Set(statuses)).toEqual(new Set([413]))
    // Each may hold the 4 MiB that it is allowed, and as much again on its way.
    expect(peakMemoryBytes(berth.pid) - beforeBytes).toBeLessThan(20 * 2 * 4 * mebibyte + growthMax)
  },
  timeoutMs,
)

guard.losesNothing()
