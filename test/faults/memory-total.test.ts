// Many requests at once that make the server keep something in memory for them. The servers are processes of their own, whose
// peak of resident memory the kernel tells. Without a limit the same work takes far more (the control).
import { expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { ociManifest } from '../../src/oci/media-types.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { peakMemoryBytes } from '../support/basics/process-memory.ts'
import { ask, expectStatus, jsonOf, manifestOfBlobs, pushBlob } from '../support/clients/registry-client.ts'
import { beginPull, beginRequest } from '../support/clients/slow-request.ts'
import { until } from '../support/clocks/until.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'

const mebibyte = 1024 * 1024
// The buffers of a connection can take a whole answer of 4 MiB. Its reader then holds nothing.
const manifestBytes = 8 * mebibyte
const repository = 'a/app'
const large = `/v2/${repository}/manifests/large`
const timeoutMs = 120_000
/** The budget, the bodies that Bun buffers for waiting requests, and memory that is collected late. */
const growthMax = 96 * mebibyte

const config = new TextEncoder().encode('{}')
const small = manifestOfBlobs(config, [])
const padded = new Uint8Array(manifestBytes).fill(0x20)
padded.set(small)

const settings = {
  BERTH_LIMITS__BODY_WINDOW: '60s',
  BERTH_SERVER__IDLE: '120s',
  BERTH_LIMITS__TAGS_PER_PUSH: '64',
  // 32 MiB are too little memory for several workers and such manifests.
  BERTH_SERVER__WORKERS: '1',
  BERTH_LIMITS__MANIFEST_BYTES: '8MiB',
}

/** A server that has answered each kind of request once, so that what is loaded at first use is loaded. */
async function startWarm(own: Readonly<Record<string, string>>): Promise<BerthProcess> {
  const berth = await startBerth({ settings: { ...settings, ...own } })
  await pushBlob(berth, repository, config)
  await expectStatus(201, put(berth, 'large', padded))
  for (let time = 0; time < 3; time += 1) await (await expectStatus(200, ask(berth, 'GET', large))).arrayBuffer()
  return berth
}

function put(berth: BerthProcess, reference: string, bytes: Uint8Array): Promise<Response> {
  const init = { body: new Uint8Array(bytes), headers: { 'content-type': ociManifest } }
  return ask(berth, 'PUT', `/v2/${repository}/manifests/${reference}`, init)
}

/** Each trial has a server of its own, because the peak never falls. */
async function withServer(own: Readonly<Record<string, string>>, act: (berth: BerthProcess) => Promise<void>) {
  const berth = await startWarm(own)
  await act(berth).finally(() => berth.stop())
}

/** Checks how far the peak rises while the work goes on and its sockets stay open. */
async function expectBounded(berth: BerthProcess, work: () => Promise<readonly { destroy(): void }[]>): Promise<void> {
  const before = peakMemoryBytes(berth.pid)
  const held = await work()
  // The peak does not change any more when nothing more is taken.
  let peak = -1
  while (peak !== peakMemoryBytes(berth.pid)) {
    peak = peakMemoryBytes(berth.pid)
    await Bun.sleep(1_500)
  }
  for (const one of held) one.destroy()
  expect(peakMemoryBytes(berth.pid) - before).toBeLessThan(growthMax)
}

/** The control: without a limit, the same work takes far more. */
async function expectGrowth(berth: BerthProcess, work: () => Promise<readonly { destroy(): void }[]>): Promise<void> {
  const before = peakMemoryBytes(berth.pid)
  const held = await work()
  await until('the memory grows', () => peakMemoryBytes(berth.pid) - before > 160 * mebibyte)
  for (const one of held) one.destroy()
}

function holdPushes(berth: BerthProcess, count: number) {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const path = `/v2/${repository}/manifests/held${index}`
      const request = await beginRequest(berth, 'PUT', path, 'content-length', manifestBytes)
      void request.send(padded.subarray(0, manifestBytes - 1))
      return { destroy: request.vanish }
    }),
  )
}

function stall(berth: BerthProcess, path: string, count: number): Promise<readonly Socket[]> {
  return Promise.all(Array.from({ length: count }, () => beginPull(berth, path)))
}

// A reader that holds the memory others wait for may do so for a second.
const bound = { BERTH_LIMITS__MEMORY: '32MiB', BERTH_LIMITS__MEMORY_HOLD: '1s', BERTH_LIMITS__MEMORY_WAIT: '30s' }
const noLimit = { BERTH_LIMITS__MEMORY: '4GiB' }

test.concurrent(
  '60 pushes of 8 MiB manifests that lack their last byte are bounded by 32 MiB, and take more without a limit',
  async () => {
    await withServer(bound, (berth) => expectBounded(berth, () => holdPushes(berth, 60)))
    await withServer(noLimit, (berth) => expectGrowth(berth, () => holdPushes(berth, 60)))
  },
  timeoutMs,
)

test.concurrent(
  '80 stalled readers of a 8 MiB manifest are bounded; operators and other callers are served meanwhile',
  async () => {
    await withServer(bound, (berth) =>
      expectBounded(berth, async () => {
        const sockets = await stall(berth, large, 80)
        const users = '/api/2021-02-21/users'
        const json = { 'content-type': 'application/json' }
        const user = JSON.stringify({ name: 'other', roles: ['admin'] })
        await expectStatus(201, ask(berth, 'POST', users, { body: user, headers: json }))
        const made = ask(berth, 'POST', `${users}/other/keys`, { body: '{"name":"k"}', headers: json })
        const { key } = (await (await expectStatus(201, made)).json()) as { key: string }
        const answer = await fetch(berth.url + large, { headers: { 'x-api-key': key } })
        expect([answer.status, digestOf(await answer.bytes())]).toEqual([200, digestOf(padded)])
        return sockets
      }),
    )
    await withServer(noLimit, (berth) => expectGrowth(berth, () => stall(berth, large, 120)))
  },
  timeoutMs,
)

test.concurrent(
  'a caller whose share is held by its own stalled readers gets it back from the oldest of them',
  () =>
    withServer(bound, async (berth) => {
      const sockets = await stall(berth, large, 4)
      const answer = await expectStatus(200, ask(berth, 'GET', large))

      expect(answer.headers.get('content-length')).toBe(String(manifestBytes))
      expect((await answer.arrayBuffer()).byteLength).toBe(manifestBytes)
      for (const socket of sockets) socket.destroy()
    }),
  timeoutMs,
)

test.concurrent(
  'a request that waits too long gets 503 with Retry-After',
  () =>
    withServer({ BERTH_LIMITS__MEMORY: '32MiB', BERTH_LIMITS__MEMORY_WAIT: '1s' }, async (berth) => {
      const sockets = await stall(berth, large, 2)
      const refused = await until('the share is held', async () => {
        const answer = await ask(berth, 'GET', large)
        await answer.arrayBuffer()
        return answer.status === 200 ? undefined : answer
      })
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
      for (const socket of sockets) socket.destroy()
    }),
  timeoutMs,
)

test.concurrent(
  '100 stalled readers of a long list of tags are bounded, and one that reads gets all tags in order',
  () =>
    withServer({ BERTH_LIMITS__MEMORY: '32MiB' }, async (berth) => {
      const tags = Array.from({ length: 40_960 }, (_, index) => `t${String(index).padStart(100, '0')}`)
      for (let at = 0; at < tags.length; at += 64) {
        const query = tags.slice(at, at + 64).map((tag) => `tag=${tag}`)
        await expectStatus(201, put(berth, `${digestOf(small)}?${query.join('&')}`, small))
      }
      const list = `/v2/${repository}/tags/list`

      expect((await jsonOf<{ tags: string[] }>(ask(berth, 'GET', list))).tags).toEqual(['large', ...tags])
      await expectBounded(berth, () => stall(berth, list, 100))
    }),
  timeoutMs,
)
