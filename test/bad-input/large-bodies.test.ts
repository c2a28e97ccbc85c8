// Bodies that are refused. The answer has to arrive though the client is still sending, and the server must not keep what
// it will not use: both are seen from outside, on a process of its own.
import { beforeAll, describe, expect, test } from 'bun:test'
import { ociManifest } from '../../src/oci/media-types.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { peakMemoryBytes } from '../support/basics/process-memory.ts'
import { useRunning } from '../support/basics/running.ts'
import { testApiKey } from '../support/basics/test-project.ts'
import { startBerth } from '../support/server/berth-process.ts'
import type { RequestBody } from '../support/server/guarded-server.ts'
import { basic } from '../support/server/test-server.ts'

const mebibyte = 1_024 * 1_024
const bodyBytes = 96 * mebibyte
const growthMax = 40 * mebibyte
const timeoutMs = 60_000
const whole = new Uint8Array(bodyBytes).fill(0x20)
const authorization = basic('apikey', testApiKey)

const berth = useRunning(() => startBerth({ settings: { BERTH_LIMITS__BLOB_BYTES: '8MiB' } }))
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
