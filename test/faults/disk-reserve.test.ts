// The disk reserve: pushes stop before the disk is full, so that revoking, deleting and collecting still work.
import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { api, identity } from '../support/api/api-server.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { testNeeding } from '../support/basics/needs.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  finish,
  jsonOf,
  manifestOfBlobs,
  openSession,
  patch,
  pushBlob,
  pushImage,
  putManifest,
  receivedBytes,
} from '../support/clients/registry-client.ts'
import { runBerthHere } from '../support/server/berth-here.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { workerSettings } from '../support/server/workers.ts'
import { canMount, makeSmallDisk, type SmallDisk } from '../support/stores/small-disk.ts'
import { auditStores } from '../support/stores/store-audit.ts'

const need = canMount()
const mebibyte = 1024 * 1024
const reserve = 16 * mebibyte
const repository = 'kept/app'

let disk: SmallDisk | undefined
let berth: BerthProcess

beforeAll(async () => {
  if (!need.isMet) return
  disk = makeSmallDisk(64)
  berth = await startBerth({
    dataDir: join(disk.path, 'data'),
    settings: { BERTH_GARBAGE__EVERY: '0s', BERTH_STORAGE__MIN_FREE: '16MiB' },
  })
})

afterAll(async () => {
  if (disk === undefined) return
  await berth.stop()
  disk.remove()
})

function freeBytes(): number {
  const { bavail, bsize } = statfsSync(disk?.path ?? '')
  return bavail * bsize
}

async function makeLimitedKey(): Promise<string> {
  const body = JSON.stringify({ name: 'limited', repositories: ['x/*'], rights: ['pull', 'push'] })
  const headers = { 'content-type': 'application/json' }
  const answer = ask(berth, 'POST', `${identity}/users/admin/keys`, { body, headers })
  return ((await (await expectStatus(201, answer)).json()) as { key: string }).key
}

/** Eight uploads at once that are never finished, until the registry takes no more. Gives their sessions. */
async function fillWithUnfinishedUploads(key: string): Promise<readonly string[]> {
  const headers = { 'x-api-key': key }
  const bytes = generatedBytes(3 * mebibyte, 1)
  const sessions: string[] = []
  const fill = async (path: string): Promise<void> => {
    for (let isTaken = true; isTaken; ) {
      const opened = await fetch(berth.url + path, { method: 'POST', headers })
      if (opened.status !== 202) return
      const session = opened.headers.get('location') ?? ''
      sessions.push(session)
      isTaken = (await fetch(berth.url + session, { method: 'PATCH', headers, body: bytes })).status === 202
    }
  }
  await Promise.all(Array.from({ length: 8 }, (_, index) => fill(`/v2/x/${index}/blobs/uploads/`)))
  // Uploads side by side stop a little early. The last bytes go one piece after the other.
  const last = { method: 'PATCH', headers, body: bytes.subarray(0, 64 * 1024) }
  while ((await fetch(berth.url + sessions[0], last)).status === 202);
  return sessions
}

const readiness = () => jsonOf<Record<string, unknown>>(ask(berth, 'GET', '/readyz'))

describe('when a key limited to x/* has filled the disk with unfinished uploads', () => {
  let stopped: string
  let untagged: Uint8Array
  let tagged: Uint8Array
  let sessions: readonly string[]
  const layer = generatedBytes(6 * mebibyte, 9)

  testNeeding(need, 'the reserve is left, and pushes are told 503 with what to do', async () => {
    expect(await readiness()).toEqual({ status: 'ready', disk: 'ok' })
    tagged = (await pushImage(berth, repository, 'v1', [generatedBytes(1_000, 2)])).bytes
    untagged = manifestOfBlobs(generatedBytes(40, 7), [])
    await pushBlob(berth, repository, generatedBytes(40, 7))
    stopped = await openSession(berth, repository)

    sessions = await fillWithUnfinishedUploads(await makeLimitedKey())

    // The metadata and its log grow a little while rows are written.
    expect(freeBytes()).toBeGreaterThan(reserve - 5 * mebibyte)
    expect(freeBytes()).toBeLessThan(reserve + mebibyte)
    expect(await readiness()).toEqual({ status: 'ready', disk: 'low' })
    const refused = [
      await ask(berth, 'POST', `/v2/${repository}/blobs/uploads/`),
      await ask(berth, 'POST', `/v2/${repository}/blobs/uploads/?digest=${digestOf(layer)}`, { body: layer }),
      await patch(berth, stopped, layer),
      await putManifest(berth, repository, 'v2', untagged),
    ]
    for (const answer of refused) {
      expect([answer.status, answer.headers.has('retry-after')]).toEqual([503, true])
      expect(await answer.text()).toContain('storage.min_free')
    }
  })

  testNeeding(need, 'an operator still revokes the key, moves tags, deletes and collects', async () => {
    await expectStatus(204, ask(berth, 'DELETE', `${identity}/users/admin/keys/limited`))
    await expectStatus(201, putManifest(berth, repository, 'moved', tagged))
    await expectStatus(200, ask(berth, 'GET', `/v2/${repository}/manifests/moved`))
    const ballast = join(disk?.path ?? '', 'ballast')
    writeFileSync(ballast, new Uint8Array(Math.max(0, freeBytes() - reserve / 2 + mebibyte)))
    await expectStatus(503, putManifest(berth, repository, 'another', tagged))
    await expectStatus(201, putManifest(berth, repository, 'moved', tagged))
    rmSync(ballast)
    await expectStatus(202, ask(berth, 'DELETE', `/v2/${repository}/manifests/v1`))
    await expectStatus(202, ask(berth, 'DELETE', `/v2/${repository}/manifests/${digestOf(tagged)}`))
    await expectStatus(200, ask(berth, 'POST', `${api}/disable`))
    await expectStatus(200, ask(berth, 'POST', `${api}/enable`))
    const before = freeBytes()
    for (const session of sessions.slice(0, -1)) await expectStatus(204, ask(berth, 'DELETE', session))
    const environment = { BERTH_DATA_DIR: berth.dataDir, BERTH_GARBAGE__QUARANTINE: '0s' }
    const { exitCode, stderr } = await runBerthHere(['gc'], environment)

    expect([exitCode, stderr]).toEqual([0, ''])
    expect(freeBytes()).toBeGreaterThan(before + 10 * mebibyte)
    expect(await readiness()).toEqual({ status: 'ready', disk: 'ok' })
  })

  testNeeding(need, 'an upload that the reserve stopped has kept its bytes and goes on', async () => {
    const ballast = Math.max(0, freeBytes() - reserve - 4 * mebibyte)
    await expectStatus(202, patch(berth, await openSession(berth, repository), generatedBytes(ballast, 3)))

    await expectStatus(503, patch(berth, stopped, layer))

    const kept = await receivedBytes(berth, stopped)
    // A worker uses only its share of the room.
    expect(kept).toBeGreaterThan((2 * mebibyte) / Number(workerSettings().BERTH_SERVER__WORKERS))
    expect(kept).toBeLessThan(layer.length)
    disk?.grow(96)
    await expectStatus(202, patch(berth, stopped, layer.subarray(kept), kept))
    await expectStatus(201, finish(berth, stopped, digestOf(layer)))
    expect(await checkBlob(berth, repository, digestOf(layer))).toBe('whole')
    expect(await auditStores(berth.dataDir)).toEqual([])
  })
})
