// `berth gc` beside a running server, as an operator runs it.
import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, rmdirSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useRunning } from '../support/basics/running.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  manifestOfBlobs,
  openSession,
  type PushedImage,
  patch,
  pushBlob,
  pushImage,
  putManifest,
} from '../support/clients/registry-client.ts'
import { beginDownload } from '../support/clients/slow-request.ts'
import { runBerthHere } from '../support/server/berth-here.ts'
import { startBerth } from '../support/server/berth-process.ts'
import { auditStores, countRows, fileOfBlob, listFiles } from '../support/stores/store-audit.ts'
import { damageMetadata } from '../support/stores/store-damage.ts'

const atOnce = ['gc', '--lease', '0s', '--quarantine', '0s', '--undelete', '0s']

const berth = useRunning(() => startBerth({ settings: { BERTH_GARBAGE__EVERY: '0s' } }))

async function gc(...options: string[]): Promise<string> {
  return collectIn(berth.dataDir, options.length === 0 ? atOnce : ['gc', ...options])
}

async function collectIn(dataDir: string, command: readonly string[]): Promise<string> {
  const run = await runBerthHere(command, { BERTH_DATA_DIR: dataDir })
  expect(run).toMatchObject({ exitCode: 0, stderr: '' })
  return run.stdout
}

/** Every row of every table, and every file with its size and time. */
function everything(): { rows: unknown; files: unknown } {
  using database = new Database(join(berth.dataDir, 'metadata.sqlite'), { readwrite: true })
  const tables = database.query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'").all()
  const rows = tables.map(({ name }) => [name, database.query(`SELECT * FROM ${name}`).all()])
  const root = join(berth.dataDir, 'blobs')
  const files = readdirSync(root, { recursive: true })
    .map(String)
    .toSorted()
    .map((name) => [name, statSync(join(root, name)).size, statSync(join(root, name)).mtimeMs])
  return { rows, files }
}

describe('berth gc beside a server', () => {
  test('after everything was deleted leaves no file behind', async () => {
    const images = await Promise.all(
      [1, 2, 3].map((seed) => pushImage(berth, 'gone/app', `v${seed}`, [generatedBytes(50_000, seed)])),
    )
    const loose = await pushBlob(berth, 'gone/app', generatedBytes(1_000, 9))
    await gc()
    expect(await checkBlob(berth, 'gone/app', loose)).toBe('status 404')
    for (const { digest, blobs } of images) {
      for (const blob of blobs) expect(await checkBlob(berth, 'gone/app', blob)).toBe('whole')
      await expectStatus(202, ask(berth, 'DELETE', `/v2/gone/app/manifests/${digest}`))
    }
    const blobs = new Set(images.flatMap((image) => image.blobs))
    // Only the first image's blobs are deleted one by one. Those of the others must be collected because their manifests
    // were deleted.
    for (const blob of images[0]?.blobs ?? [])
      await expectStatus(202, ask(berth, 'DELETE', `/v2/gone/app/blobs/${blob}`))

    const output = await gc()

    expect(output).toContain(`collected ${blobs.size} blobs`)
    expect(listFiles(berth.dataDir)).toEqual([])
    expect(['blobs', 'blob_links', 'blob_queue', 'trash'].map((table) => countRows(berth.dataDir, table))).toEqual([
      0, 0, 0, 0,
    ])
  })

  test('with --dry-run says what would go, and changes nothing', async () => {
    await pushImage(berth, 'dry/app', 'kept', [generatedBytes(2_000, 20)])
    await pushBlob(berth, 'dry/app', generatedBytes(3_000, 21))
    await patch(berth, await openSession(berth, 'dry/app'), generatedBytes(100, 22))
    // An upload without an object leaves nothing to purge.
    await ask(berth, 'DELETE', await openSession(berth, 'dry/app'))
    const cancelled = await openSession(berth, 'dry/app')
    await patch(berth, cancelled, generatedBytes(20_000, 23))
    await ask(berth, 'DELETE', cancelled)
    const before = everything()

    const output = await gc('--dry-run', '--lease', '0s', '--quarantine', '0s')

    expect(everything()).toEqual(before)
    expect(output).toContain('would collect 1 blobs (2.9 KiB), remove 0 unfinished uploads, purge 1 objects')
    await gc()
  })

  test('within the lease takes nothing of a push that is under way, however often it runs', async () => {
    const [config, layer] = [generatedBytes(10, 30), generatedBytes(5_000, 31)]
    const digests = [await pushBlob(berth, 'slow/app', config), await pushBlob(berth, 'slow/app', layer)]

    for (const digest of digests) {
      await expectStatus(200, ask(berth, 'HEAD', `/v2/slow/app/blobs/${digest}`))
      await gc('--quarantine', '0s')
    }

    await expectStatus(201, putManifest(berth, 'slow/app', 'latest', manifestOfBlobs(config, [layer])))
    for (const digest of digests) expect(await checkBlob(berth, 'slow/app', digest)).toBe('whole')
  })

  test.each(['object', 'folder'])(
    'tells of the %s in whose place something else stands, and collects the others',
    async (place) => {
      const digests = await Promise.all(
        Array.from({ length: 5 }, (_, n) => pushBlob(berth, 'odd/app', generatedBytes(20_000, 70 + n))),
      )
      const object = fileOfBlob(berth.dataDir, digests[0] ?? '')
      const bystanders = place === 'folder' ? readdirSync(dirname(object)).length : 1
      const odd = place === 'folder' ? dirname(object) : object
      rmSync(odd, { recursive: true })
      if (place === 'folder') writeFileSync(odd, 'x')
      else mkdirSync(odd)

      for (let round = 0; round < 2; round += 1) {
        const { exitCode, stdout, stderr } = await runBerthHere([...atOnce, '--sweep'], {
          BERTH_DATA_DIR: berth.dataDir,
        })
        expect(exitCode).toBe(1)
        expect(stdout).toMatch(round === 0 ? /^collected 5 blobs .* purged \d objects$/m : /^collected 0 blobs/m)
        expect(stderr).toContain(
          round === 0 ? `cannot remove the object ${basename(object)}` : 'cannot remove the object',
        )
        expect(stderr).toContain(odd)
        expect(stderr).toMatch(/\n[\w :]*objects could not be removed; the next collection tries again\n$/)
        expect(countRows(berth.dataDir, 'trash')).toBe(bystanders)
        damageMetadata(berth.dataDir, 'UPDATE trash SET taken_until = 0')
      }

      if (place === 'folder') unlinkSync(odd)
      else rmdirSync(odd)
      await gc()
      expect(countRows(berth.dataDir, 'trash')).toBe(0)
    },
  )

  test('lets a pull that has begun come to its end', async () => {
    const large = generatedBytes(16 * 1024 * 1024, 60)
    const digest = await pushBlob(berth, 'pulled/app', large)
    const download = await beginDownload(berth, `/v2/pulled/app/blobs/${digest}`)
    await Bun.sleep(50)

    await expectStatus(202, ask(berth, 'DELETE', `/v2/pulled/app/blobs/${digest}`))
    await gc()

    expect(await checkBlob(berth, 'pulled/app', digest)).toBe('status 404')
    const answer = await download.readToEnd()
    expect(digestOf(answer.subarray(answer.length - large.length))).toBe(digestOf(large))
  })

  test('without pause and without any lease, while images are pushed and deleted, breaks no image that was acknowledged', async () => {
    let isOver = false
    const collecting = (async () => {
      while (!isOver) {
        await gc()
        await Bun.sleep(0)
      }
    })()
    const clients = Array.from({ length: 3 }, async (_, client) => {
      for (let round = 0; round < 15; round += 1) {
        const layers = [generatedBytes(20_000, 70 + (round % 3)), generatedBytes(5_000, 1_000 + client * 100 + round)]
        const { digest, blobs } = await pushUntilTaken('busy/app', `client-${client}`, layers)
        for (const blob of blobs) expect(await checkBlob(berth, 'busy/app', blob)).toBe('whole')
        if (round % 2 === 0) await expectStatus(202, ask(berth, 'DELETE', `/v2/busy/app/manifests/${digest}`))
      }
    })

    await Promise.all(clients).finally(() => {
      isOver = true
    })
    await collecting

    expect(await auditStores(berth.dataDir)).toEqual([])
  })
})

test('berth gc keeps the blobs of a manifest that was pushed before they were', async () => {
  const sparse = await startBerth({ settings: { BERTH_MANIFESTS__MISSING_CONTENT: 'allow' } })
  const [config, layer] = [generatedBytes(10, 50), generatedBytes(5_000, 51)]
  await expectStatus(201, putManifest(sparse, 'sparse/app', 'latest', manifestOfBlobs(config, [layer])))
  await collectIn(sparse.dataDir, atOnce)
  const digests = [await pushBlob(sparse, 'sparse/app', config), await pushBlob(sparse, 'sparse/app', layer)]

  expect(await collectIn(sparse.dataDir, atOnce)).toContain('collected 0 blobs')

  for (const digest of digests) expect(await checkBlob(sparse, 'sparse/app', digest)).toBe('whole')
  expect(await auditStores(sparse.dataDir)).toEqual([])
  await sparse.stop()
})

/** Without a lease a push may be told that its blobs are gone; the client uploads them again, and comes through. */
async function pushUntilTaken(repository: string, tag: string, layers: readonly Uint8Array[]): Promise<PushedImage> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await pushImage(berth, repository, tag, layers)
    } catch (error) {
      if (attempt === 50 || !String(error).includes('MANIFEST_BLOB_UNKNOWN')) throw error
    }
  }
}
