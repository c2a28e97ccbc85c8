import { describe, expect, test } from 'bun:test'
import { ociManifest } from '../../src/oci/media-types.ts'
import { useRunning } from '../support/basics/running.ts'
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

const guard = new GuardedServer()
const kibibyte = 1_024
const manifestMax = 4 * kibibyte * kibibyte

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

// In a process of its own: Bun has one such limit for a whole process.
const berth = useRunning(() => startBerth({ settings: { BERTH_LIMITS__HEADER_BYTES: '32KiB' } }))

test.each([
  [20, 200],
  [30, 200],
  [33, 431],
  [100, 431],
])('with a limit of 32 KiB, headers of %p KiB are answered %p', async (size, status) => {
  const answer = await fetch(`${berth.url}/healthz`, { headers: { 'x-padding': 'a'.repeat(size * 1024) } })
  expect(answer.status).toBe(status)
})

guard.losesNothing()
