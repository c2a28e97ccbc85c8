// Many requests at once that make the server keep something in memory for them. The servers are processes of their own, whose
// peak of resident memory the kernel tells. The control has no bound to speak of, and shows that the trials would see growth.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
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

/** How far the peak rises while the work goes on and its sockets stay open. */
async function growthOf(berth: BerthProcess, work: () => Promise<readonly { destroy(): void }[]>): Promise<number> {
  const before = peakMemoryBytes(berth.pid)
  const held = await work()
  // The peak stands still when nothing more is taken.
  let peak = -1
  while (peak !== peakMemoryBytes(berth.pid)) {
    peak = peakMemoryBytes(berth.pid)
    await Bun.sleep(1_500)
  }
  for (const one of held) one.destroy()
  return peakMemoryBytes(berth.pid) - before
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

describe('with 32 MiB for all requests', () => {
  // A reader that holds the memory others wait for may do so for a second.
  const bound = { BERTH_LIMITS__MEMORY: '32MiB', BERTH_LIMITS__MEMORY_HOLD: '1s', BERTH_LIMITS__MEMORY_WAIT: '30s' }
  let berth: BerthProcess

  // The peak never falls, so each trial has its own server.
  beforeEach(async () => {
    berth = await startWarm(bound)
  })

  afterEach(async () => {
    await berth.stop()
  })

  test(
    '60 pushes of 8 MiB manifests that lack their last byte are bounded',
    async () => expect(await growthOf(berth, () => holdPushes(berth, 60))).toBeLessThan(growthMax),
    timeoutMs,
  )

  test(
    '80 stalled readers of a 8 MiB manifest are bounded; operators and other callers are served meanwhile',
    async () => {
      const growth = await growthOf(berth, async () => {
        const sockets = await stall(berth, large, 80)
        const users = '/api/2021-02-21/users'
        const json = { 'content-type': 'application/json' }
        const user = JSON.stringify({ name: 'other', roles: ['admin'] })
        await expectStatus(201, ask(berth, 'POST', users, { body: user, headers: json }))
        const made = ask(berth, 'POST', `${users}/other/keys`, { body: '{"name":"k"}', headers: json })
        const { key } = (await (await expectStatus(201, made)).json()) as { key: string }
        const answer = await fetch(berth.url + large, { headers: { 'x-api-key': key } })
        expect([answer.status, digestOf(new Uint8Array(await answer.arrayBuffer()))]).toEqual([200, digestOf(padded)])
        return sockets
      })
      expect(growth).toBeLessThan(growthMax)
    },
    timeoutMs,
  )

  test(
    'a caller whose share is held by its own stalled readers gets it back from the oldest of them',
    async () => {
      const sockets = await stall(berth, large, 4)
      const answer = await expectStatus(200, ask(berth, 'GET', large))

      expect(answer.headers.get('content-length')).toBe(String(manifestBytes))
      expect((await answer.arrayBuffer()).byteLength).toBe(manifestBytes)
      for (const socket of sockets) socket.destroy()
    },
    timeoutMs,
  )
})

test(
  'a request that waits too long gets 503 with Retry-After, and a limit that is too high is seen as growth',
  async () => {
    const strict = await startWarm({ BERTH_LIMITS__MEMORY: '32MiB', BERTH_LIMITS__MEMORY_WAIT: '1s' })
    const control = await startWarm({ BERTH_LIMITS__MEMORY: '4GiB' })
    const other = await startWarm({ BERTH_LIMITS__MEMORY: '4GiB' })
    try {
      const sockets = await stall(strict, large, 2)
      const refused = await until('the share is held', async () => {
        const answer = await ask(strict, 'GET', large)
        await answer.arrayBuffer()
        return answer.status === 200 ? undefined : answer
      })
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
      for (const socket of sockets) socket.destroy()

      expect(await growthOf(control, () => holdPushes(control, 60))).toBeGreaterThan(160 * mebibyte)
      expect(await growthOf(other, () => stall(other, large, 120))).toBeGreaterThan(160 * mebibyte)
    } finally {
      await strict.stop()
      await control.stop()
      await other.stop()
    }
  },
  timeoutMs,
)

test(
  '100 stalled readers of a long list of tags are bounded, and one that reads gets all tags in order',
  async () => {
    const berth = await startWarm({ BERTH_LIMITS__MEMORY: '32MiB' })
    try {
      const tags = Array.from({ length: 40_960 }, (_, index) => `t${String(index).padStart(100, '0')}`)
      for (let at = 0; at < tags.length; at += 64) {
        const query = tags.slice(at, at + 64).map((tag) => `tag=${tag}`)
        await expectStatus(201, put(berth, `${digestOf(small)}?${query.join('&')}`, small))
      }
      const list = `/v2/${repository}/tags/list`

      expect((await jsonOf<{ tags: string[] }>(ask(berth, 'GET', list))).tags).toEqual(['large', ...tags])
      expect(await growthOf(berth, () => stall(berth, list, 100))).toBeLessThan(growthMax)
    } finally {
      await berth.stop()
    }
  },
  timeoutMs,
)
