// What is acknowledged was synced before: seen from outside, by the system calls of a running server.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { generatedBytes } from '../support/basics/generated-bytes.ts'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { projectRoot } from '../support/basics/test-project.ts'
import {
  expectStatus,
  manifestOfBlobs,
  openSession,
  patch,
  pushBlob,
  pushImage,
  putManifest,
} from '../support/clients/registry-client.ts'
import { until } from '../support/clocks/until.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { workersOf } from '../support/server/workers.ts'
import { fileOfBlob } from '../support/stores/store-audit.ts'

const temporaryFolder = useTemporaryFolders('durability')

function canTrace(): Need {
  const strace = Bun.which('strace')
  if (strace === null) return { isMet: false, reason: 'strace is not installed (apt-get install strace)' }
  const { success, stderr } = Bun.spawnSync([strace, '-e', 'trace=none', 'true'], { stdout: 'ignore' })
  return { isMet: success, reason: `strace may not trace here: ${stderr.toString().trim()}` }
}

/** The files and folders that a server syncs while `act` runs, in order, each in the data folder. */
async function syncedBy(berth: BerthProcess, act: () => Promise<unknown>, fault?: string): Promise<string[]> {
  const log = join(temporaryFolder(), 'trace')
  const traced = ['-e', 'trace=fsync,fdatasync', ...(fault === undefined ? [] : ['-e', `inject=${fault}`])]
  const pids = [berth.pid, ...workersOf(berth.pid)]
  const attach = pids.flatMap((pid) => ['-p', String(pid)])
  const tracer = Bun.spawn(['strace', '-f', '-y', ...traced, '-o', log, ...attach], {
    stdout: 'ignore',
    stderr: 'pipe',
  })
  let said = ''
  const listening = (async () => {
    for await (const chunk of tracer.stderr) said += new TextDecoder().decode(chunk)
  })()
  await until('the tracer is attached', () => pids.every((pid) => said.includes(`Process ${pid} attached`)))
  await act()
  tracer.kill('SIGINT')
  await Promise.all([tracer.exited, listening])
  const calls = readFileSync(log, 'utf8').matchAll(/f(?:data)?sync\(\d+<([^>]+)>/g)
  return [...calls].map(([, path]) => (path ?? '').replace(berth.dataDir, '').replace(/^\//, ''))
}

testNeeding(canTrace(), 'a new folder for blobs is synced, and so is the one that it is in', async () => {
  const parent = temporaryFolder()
  const log = join(parent, 'trace')
  const adapter = join(projectRoot, 'src/adapters/blobs-filesystem/filesystem-blob-store.ts')
  const program = `const { FilesystemBlobStore } = await import(${JSON.stringify(adapter)})
    await FilesystemBlobStore.open(${JSON.stringify(join(parent, 'blobs'))})`
  const traced = ['strace', '-f', '-y', '-e', 'trace=fsync', '-o', log, process.execPath, '-e', program]
  expect(Bun.spawnSync(traced, { stdout: 'ignore' }).exitCode).toBe(0)

  const synced = [...readFileSync(log, 'utf8').matchAll(/fsync\(\d+<([^>]+)>/g)].map(([, path]) => path)
  expect(synced).toEqual([join(parent, 'blobs'), parent])
})

describe('before it is acknowledged', () => {
  let berth: BerthProcess

  beforeAll(async () => {
    berth = await startBerth({ settings: { BERTH_GARBAGE__EVERY: '0s' } })
  })

  afterAll(async () => {
    await berth.stop()
  })

  testNeeding(canTrace(), 'a blob has its file, its folder and its row synced, in this order', async () => {
    let digest = ''
    const synced = await syncedBy(berth, async () => {
      digest = await pushBlob(berth, 'durable/app', generatedBytes(700_000, 1))
    })

    const file = fileOfBlob(berth.dataDir, digest).replace(`${berth.dataDir}/`, '')
    const folder = file.split('/').slice(0, 2).join('/')
    expect(synced.filter((path) => path === file || path === folder)).toEqual([file, folder])
    expect(synced.lastIndexOf('metadata.sqlite-wal')).toBeGreaterThan(synced.indexOf(folder))
  })

  testNeeding(canTrace(), 'a chunk has its file and its row synced, in this order', async () => {
    const session = await openSession(berth, 'durable/app')

    const synced = await syncedBy(berth, () => expectStatus(202, patch(berth, session, generatedBytes(20_000, 2))))

    const file = synced.findIndex((path) => path.startsWith('blobs/'))
    expect(file).toBeGreaterThanOrEqual(0)
    expect(synced.lastIndexOf('metadata.sqlite-wal')).toBeGreaterThan(file)
  })

  testNeeding(canTrace(), 'a small blob has its row synced once, and no file', async () => {
    const synced = await syncedBy(berth, () => pushBlob(berth, 'durable/app', generatedBytes(16_384, 5)))

    expect(synced).toEqual(['metadata.sqlite-wal'])
  })

  testNeeding(canTrace(), 'a small chunk has its row synced, and no file', async () => {
    const session = await openSession(berth, 'durable/app')

    const synced = await syncedBy(berth, () => expectStatus(202, patch(berth, session, generatedBytes(1_000, 6))))

    expect(synced.length).toBeGreaterThan(0)
    expect(new Set(synced)).toEqual(new Set(['metadata.sqlite-wal']))
  })

  testNeeding(canTrace(), 'a manifest has its rows synced', async () => {
    await pushImage(berth, 'durable/app', 'one', [])
    const bytes = manifestOfBlobs(generatedBytes(40, 3), [])
    await pushBlob(berth, 'durable/app', generatedBytes(40, 3))

    const synced = await syncedBy(berth, () => expectStatus(201, putManifest(berth, 'durable/app', 'two', bytes)))

    expect(synced).toContain('metadata.sqlite-wal')
  })

  testNeeding(canTrace(), 'a manifest whose rows cannot be synced is refused; the next push is accepted', async () => {
    // The fault is simulated in one process. The kernel reports a real one to all.
    const berth = await startBerth({ settings: { BERTH_SERVER__WORKERS: '1' } })
    await pushImage(berth, 'durable/app', 'one', [])
    const bytes = manifestOfBlobs(generatedBytes(40, 5), [])
    await pushBlob(berth, 'durable/app', generatedBytes(40, 5))
    const put = () => putManifest(berth, 'durable/app', 'three', bytes)

    await syncedBy(berth, () => expectStatus(503, put()), 'fdatasync:error=EIO')
    const synced = await syncedBy(berth, () => expectStatus(201, put()))
    await berth.stop()

    expect(synced).toContain('metadata.sqlite')
  })
})

describe('the data folder', () => {
  test('holds nothing that others may read, whatever the umask, and though the folder itself may be read', async () => {
    const dataDir = temporaryFolder()
    chmodSync(dataDir, 0o755)
    const umask = process.umask(0o022)
    const berth = await startBerth({ dataDir }).finally(() => process.umask(umask))
    await pushImage(berth, 'private/app', 'latest', [generatedBytes(1_000, 4)])

    const open = readdirSync(dataDir, { recursive: true })
      .map(String)
      .filter((name) => (lstatSync(join(dataDir, name)).mode & 0o077) !== 0)
    await berth.stop()

    expect(open).toEqual([])
  })
})
