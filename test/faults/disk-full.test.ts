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
  /** A request that brings what follows the first `before` bytes, while less than that is left on the disk. */
  const requests = [
    { name: 'a single POST', sizeBytes: 4 * mebibyte, before: 0, leftBytes: 2 * mebibyte },
    { name: 'a small PATCH', sizeBytes: 300_000, before: 1_000, leftBytes: 64 * 1024 },
    { name: 'a large PATCH', sizeBytes: 4 * mebibyte, before: 0, leftBytes: mebibyte },
    { name: 'a closing PUT', sizeBytes: 3 * mebibyte, before: 0, leftBytes: mebibyte },
  ] as const
  for (const [seed, { name, sizeBytes, before, leftBytes }] of requests.entries()) {
    testNeeding(
      need,
      `${name} is told 503, stores nothing that is visible, and succeeds when there is room`,
      async () => {
        const bytes = generatedBytes(sizeBytes, seed)
        const digest = digestOf(bytes)
        const session = await openSession(berth, repository)
        if (before > 0) await expectStatus(202, patch(berth, session, bytes.subarray(0, before)))
        const send = () => {
          if (name.includes('PATCH')) return patch(berth, session, bytes.subarray(before), before)
          if (name.includes('PUT')) return finish(berth, session, digest, bytes)
          return ask(berth, 'POST', `/v2/${repository}/blobs/uploads/?digest=${digest}`, { body: bytes })
        }
        const ballast = fill(leftBytes)

        const answer = await send()
        expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.any(String)])
        expect(await answer.text()).toContain('"code":"UNAVAILABLE"')
        expect(await checkBlob(berth, repository, digest)).toBe('status 404')

        ballast.free()
        if (before > 0) expect(await receivedBytes(berth, session)).toBe(before)
        if (name.includes('PATCH')) await completeUpload(berth, session, bytes)
        else await expectStatus(201, send())
        expect(await checkBlob(berth, repository, digest)).toBe('whole')
      },
    )
  }

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
