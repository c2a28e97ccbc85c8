// A server that cannot start says why, which setting it is about, and what to do next.
import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Need, testNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { projectRoot } from '../support/basics/test-project.ts'
import { runBerth } from '../support/server/berth-command.ts'
import { type BerthOptions, startBerth } from '../support/server/berth-process.ts'
import { canMount, makeSmallDisk } from '../support/stores/small-disk.ts'

const newFolder = useTemporaryFolders('start-errors')
type Settings = Readonly<Record<string, string>>

const serve = (dataDir: string, settings: Settings = {}) =>
  runBerth(['serve'], { BERTH_DATA_DIR: dataDir, BERTH_SERVER__PORT: '0', ...settings }, newFolder())

const nobody = 65_534

/** As a user without rights. */
function serveAsNobody(dataDir: string, settings: Settings = {}) {
  const command = [process.execPath, join(projectRoot, 'src/main.ts'), 'serve']
  const { exitCode, stderr } = Bun.spawnSync(
    ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--inh-caps=-all', ...command],
    {
      env: { PATH: process.env['PATH'] ?? '', BERTH_DATA_DIR: dataDir, BERTH_SERVER__PORT: '0', ...settings },
      cwd: '/',
      timeout: 20_000,
    },
  )
  return { exitCode, stderr: stderr.toString() }
}

function canBecomeNobody(): Need {
  const reason = 'it needs root, setpriv, and a checkout that every user can read'
  if (process.getuid?.() !== 0 || Bun.which('setpriv') === null) return { isMet: false, reason }
  const { success } = Bun.spawnSync([
    ...['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', process.execPath],
    ...[join(projectRoot, 'src/main.ts'), '--version'],
  ])
  return { isMet: success, reason }
}

const ofNobody = canBecomeNobody()

/** A folder that every user can reach. */
function openFolder(): string {
  const folder = newFolder()
  chmodSync(folder, 0o755)
  return folder
}

describe('the address', () => {
  test('that this machine does not have', async () => {
    const { exitCode, stderr } = await serve(newFolder(), { BERTH_SERVER__HOST: '203.0.113.7' })
    expect([exitCode, stderr]).toEqual([
      1,
      'berth: cannot listen on 203.0.113.7:0: this machine has no such address; set server.host to an address of this machine, or to 0.0.0.0 for all of them\n',
    ])
  })

  testNeeding(ofNobody, 'with a port below 1024, for a user without rights', async () => {
    const dataDir = openFolder()
    chownSync(dataDir, nobody, nobody)
    const { exitCode, stderr } = serveAsNobody(dataDir, { BERTH_SERVER__PORT: '81' })
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringMatching(/cannot listen on 127\.0\.0\.1:81: .* below 1024; set server\.port .*CAP_NET_BIND_SERVICE/),
    ])
  })
})

// Two registries on one port would share its requests: half of a push would reach the wrong registry.
test('a second server on a used port, or on a used data folder, does not start, and the first one continues', async () => {
  const first = await startBerth()
  const { port } = new URL(first.url)
  const start = (options: BerthOptions) => startBerth(options).then(() => 'it started', String)

  const outcome = await start({ settings: { BERTH_SERVER__PORT: port } })
  for (const words of ['Berth ended with 1 before it was ready', `127.0.0.1:${port}`, 'server.port']) {
    expect(outcome).toContain(words)
  }
  expect(await start({ dataDir: first.dataDir })).toContain('another Berth is serving this data folder')
  const headers = { 'x-api-key': first.apiKey, connection: 'close' }
  const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(`${first.url}/v2/`, { headers })))
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  await first.stop()
})

describe('the data folder', () => {
  test.each(['', '/below'])('that is a file%s', async (rest) => {
    const file = join(newFolder(), 'file')
    writeFileSync(file, 'x')
    const { exitCode, stderr } = await serve(file + rest)
    expect([exitCode, stderr]).toEqual([
      1,
      `berth: cannot use the data folder ${file + rest} (data_dir): ${file} is a file; set data_dir to a folder\n`,
    ])
    expect(readFileSync(file, 'utf8')).toBe('x')
  })

  test('in which a file stands in the place of a folder', async () => {
    const dataDir = newFolder()
    const file = join(dataDir, 'blobs/3a')
    mkdirSync(join(dataDir, 'blobs'))
    writeFileSync(file, 'x')
    const { exitCode, stderr } = await serve(dataDir)
    expect([exitCode, stderr]).toEqual([
      1,
      `berth: cannot use the data folder ${dataDir} (data_dir): ${file} is a file, and Berth needs a folder there; move the file away and start again\n`,
    ])
  })

  testNeeding(ofNobody, 'that belongs to another user, or cannot be created', async () => {
    const folder = openFolder()
    for (const dataDir of [folder, join(folder, 'new')]) {
      const { exitCode, stderr } = serveAsNobody(dataDir)
      expect([exitCode, stderr]).toEqual([
        1,
        expect.stringMatching(/\(data_dir\): the user with the id 65534 may not write/),
      ])
      expect(stderr).toMatch(/chown -R.*set data_dir/)
    }
  })

  testNeeding(ofNobody, 'whose files belong to another user', async () => {
    const dataDir = openFolder()
    expect((await runBerth(['migrate'], { BERTH_DATA_DIR: dataDir }, newFolder())).exitCode).toBe(0)
    chownSync(dataDir, nobody, nobody)
    const { exitCode, stderr } = serveAsNobody(dataDir)
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/metadata\.sqlite.*chown -R/)])
  })

  describe('on a disk', () => {
    const disks: { remove(): void }[] = []
    afterAll(() => {
      for (const disk of disks) disk.remove()
    })

    testNeeding(canMount(), 'that is full', async () => {
      const disk = makeSmallDisk(1)
      disks.push(disk)
      mkdirSync(join(disk.path, 'data'))
      Bun.spawnSync(['dd', 'if=/dev/zero', `of=${join(disk.path, 'filler')}`, 'bs=4k'])
      const { exitCode, stderr } = await serve(join(disk.path, 'data'))
      expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/\(data_dir\): its disk is full; free some space/)])
    })

    testNeeding(canMount(), 'that is read-only', async () => {
      const disk = makeSmallDisk(1)
      disks.push(disk)
      expect(Bun.spawnSync(['mount', '-o', 'remount,ro', disk.path]).success).toBe(true)
      for (const dataDir of [disk.path, join(disk.path, 'data')]) {
        const { exitCode, stderr } = await serve(dataDir)
        expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/\(data_dir\): its file system is read-only/)])
        expect(existsSync(join(disk.path, 'data'))).toBe(false)
      }
    })
  })
})

describe('an old Node', () => {
  test.each(['start', 'berth', 'test', 'with-bun'])('is refused in words by scripts/%s.mjs', (script) => {
    const preload = join(newFolder(), 'old.cjs')
    writeFileSync(preload, "Object.defineProperty(process.versions, 'node', { value: '18.20.8' })")
    const { exitCode, stderr } = Bun.spawnSync([
      'node',
      '--require',
      preload,
      join(projectRoot, `scripts/${script}.mjs`),
      '--version',
    ])
    expect([exitCode, stderr.toString()]).toEqual([
      1,
      'Berth needs Node 20 or newer; this is Node 18.20.8. Install a newer one from https://nodejs.org\n',
    ])
  })
})
