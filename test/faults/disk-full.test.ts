// A full disk: a clean 503, nothing half visible, and all is well when there is room again, without a restart.
import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { testNeeding } from '../support/basics/needs.ts'
import {
  ask,
  checkBlob,
  completeUpload,
  expectStatus,
  finish,
  manifestOfBlobs,
  openSession,
  patch,
  pushBlob,
  pushImage,
  putManifest,
  receivedBytes,
} from '../support/clients/registry-client.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { canMount, makeSmallDisk, type SmallDisk } from '../support/stores/small-disk.ts'
import { auditStores } from '../support/stores/store-audit.ts'

const repository = 'full/app'
const need = canMount()
const mebibyte = 1024 * 1024

let disk: SmallDisk | undefined
let berth: BerthProcess

beforeAll(async () => {
  if (!need.isMet) return
  disk = makeSmallDisk(24)
  // Without a reserve: other programs can fill the disk to its last byte.
  const settings = { BERTH_GARBAGE__EVERY: '0s', BERTH_STORAGE__MIN_FREE: '0' }
  berth = await startBerth({ dataDir: join(disk.path, 'data'), settings })
})

afterAll(async () => {
  if (disk === undefined) return
  await berth.stop()
  disk.remove()
})

/** Takes all but `leftBytes` of the disk; gives them back again. */
function fill(leftBytes: number): { free(): void } {
  const path = join(disk?.path ?? '', 'ballast')
  const { bavail, bsize } = statfsSync(disk?.path ?? '')
  writeFileSync(path, new Uint8Array(Math.max(0, bavail * bsize - leftBytes)))
  return { free: () => rmSync(path) }
}

describe('on a full disk', () => {
  testNeeding(need, 'an upload is told 503, leaves nothing to be seen, and succeeds when there is room', async () => {
    const bytes = generatedBytes(4 * mebibyte, 1)
    const ballast = fill(2 * mebibyte)

    const path = `/v2/${repository}/blobs/uploads/?digest=${digestOf(bytes)}`
    const answer = await ask(berth, 'POST', path, { body: bytes })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).not.toBeNull()
    expect(await answer.text()).toContain('"code":"UNAVAILABLE"')
    expect(await checkBlob(berth, repository, digestOf(bytes))).toBe('status 404')

    ballast.free()
    await pushBlob(berth, repository, bytes)
    expect(await checkBlob(berth, repository, digestOf(bytes))).toBe('whole')
  })

  testNeeding(need, 'a small PATCH is told 503, and the same session goes on at once when there is room', async () => {
    const bytes = generatedBytes(300_000, 2)
    const session = await openSession(berth, repository)
    await expectStatus(202, patch(berth, session, bytes.subarray(0, 1_000)))
    const ballast = fill(64 * 1024)

    expect((await patch(berth, session, bytes.subarray(1_000), 1_000)).status).toBe(503)

    ballast.free()
    expect(await receivedBytes(berth, session)).toBe(1_000)
    await expectStatus(202, patch(berth, session, bytes.subarray(1_000), 1_000))
    await expectStatus(201, finish(berth, session, digestOf(bytes)))
    expect(await checkBlob(berth, repository, digestOf(bytes))).toBe('whole')
  })

  testNeeding(need, 'a large PATCH is told 503, and the same session goes on at once when there is room', async () => {
    const bytes = generatedBytes(4 * mebibyte, 3)
    const session = await openSession(berth, repository)
    const ballast = fill(mebibyte)

    expect((await patch(berth, session, bytes)).status).toBe(503)

    ballast.free()
    await completeUpload(berth, session, bytes)
    expect(await checkBlob(berth, repository, digestOf(bytes))).toBe('whole')
  })

  testNeeding(need, 'a closing PUT is told 503, and is acknowledged when it comes again', async () => {
    const bytes = generatedBytes(3 * mebibyte, 4)
    const session = await openSession(berth, repository)
    const ballast = fill(mebibyte)

    expect((await finish(berth, session, digestOf(bytes), bytes)).status).toBe(503)

    ballast.free()
    await expectStatus(201, finish(berth, session, digestOf(bytes), bytes))
    expect(await checkBlob(berth, repository, digestOf(bytes))).toBe('whole')
  })

  testNeeding(need, 'manifests are told 503 without a trace, while everything can still be pulled', async () => {
    const { digest, blobs } = await pushImage(berth, repository, 'before', [generatedBytes(1_000, 5)])
    const padding = generatedBytes(1_000_000, 6).toBase64()
    const bytes = manifestOfBlobs(generatedBytes(40, 7), [], padding)
    await pushBlob(berth, repository, generatedBytes(40, 7))
    const ballast = fill(0)

    const refused = await putManifest(berth, repository, 'after', bytes)
    const pulled = await ask(berth, 'GET', `/v2/${repository}/manifests/before`)

    expect(refused.status).toBe(503)
    expect([pulled.status, pulled.headers.get('docker-content-digest')]).toEqual([200, digest])
    for (const blob of blobs) expect(await checkBlob(berth, repository, blob)).toBe('whole')
    await expectStatus(404, ask(berth, 'GET', `/v2/${repository}/manifests/after`))

    ballast.free()
    await expectStatus(201, putManifest(berth, repository, 'after', bytes))
    await expectStatus(200, ask(berth, 'GET', `/v2/${repository}/manifests/after`))
  })

  testNeeding(need, 'many uploads at once are all told 503 or 201, and what was told is true', async () => {
    const contents = Array.from({ length: 8 }, (_, index) => generatedBytes(mebibyte, 10 + index))
    const ballast = fill(3 * mebibyte)

    const answers = await Promise.all(
      contents.map((bytes) =>
        ask(berth, 'POST', `/v2/${repository}/blobs/uploads/?digest=${digestOf(bytes)}`, { body: bytes }),
      ),
    )

    expect(answers.map((answer) => answer.status).filter((status) => ![201, 503].includes(status))).toEqual([])
    ballast.free()
    for (const [index, bytes] of contents.entries()) {
      const state = answers[index]?.status === 201 ? 'whole' : 'status 404'
      expect(await checkBlob(berth, repository, digestOf(bytes))).toBe(state)
    }
  })

  testNeeding(need, 'nothing is damaged', async () => {
    expect(await auditStores(berth.dataDir)).toEqual([])
    await expectStatus(200, ask(berth, 'GET', '/readyz'))
  })
})
