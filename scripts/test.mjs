// `npm test`: installs what is missing, then checks format, lint and types, and runs every test that needs no other server.
import './node-version.mjs'
import { spawn } from 'node:child_process'
import { chmodSync, closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism, freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { bunPath, ensureInstalled, root } from './install.mjs'

ensureInstalled({ dev: true })

const bun = bunPath()
const checks = [
  [
    'format and lint (biome)',
    [join('node_modules', '@biomejs', 'biome', 'bin', 'biome'), 'check', '--error-on-warnings', '.'],
  ],
  ['types (tsc)', [join('node_modules', 'typescript', 'bin', 'tsc'), '--noEmit']],
]

/**
 * So many processes of `bun test` run at once. Many tests mostly wait, so there are three more than there are cores. CI runs one
 * for each core: its disk is slower, and tests with short time limits need room.
 */
const processesMax = process.env.CI ? Math.max(2, availableParallelism()) : availableParallelism() + 3

/** `.ci/run` starts these, because they need other programs, or copy much. */
const leftToCi = ['clients/', 'servers/', 'deploy/one-file.test.ts']

/** About how many seconds the slow files take. A wrong number costs time, and nothing else. */
const slowFiles = {
  'api/accounts/statistics-model': 4,
  'api/errors': 8,
  'api/log-lines': 4,
  'contract/blob-store-s3': 8,
  'contract/metadata-store': 6,
  'contract/metadata-store-postgres': 19,
  'contract/rows-move': 8,
  'faults/canary': 15,
  'faults/connections': 12,
  'faults/crash': 7,
  'faults/idle-time': 16,
  'faults/interrupted-bodies': 5,
  'faults/log-pipe': 4,
  'faults/lost-bytes': 5,
  'faults/memory-total': 20,
  'faults/move-kills': 5,
  'faults/move-steps': 11,
  'faults/move-stores': 10,
  'faults/postgres-cuts': 25,
  'faults/postgres-disable': 5,
  'faults/postgres-failover': 19,
  'faults/postgres-limits': 7,
  'faults/postgres-outages': 22,
  'faults/postgres-sessions': 9,
  'faults/s3-doubt': 14,
  'faults/s3-downloads': 7,
  'faults/s3-faults': 16,
  'faults/s3-slow-readers': 10,
  'faults/shutdown': 17,
  'faults/start-errors': 6,
  'faults/workers/workers': 42,
  'replicas/audit-control': 10,
  'replicas/clocks': 18,
  'replicas/collector-crashes': 7,
  'replicas/collector-interleavings': 8,
  'replicas/garbage': 7,
  'replicas/identity': 24,
  'replicas/killed-replicas': 10,
  'replicas/push-interleavings': 5,
  'replicas/upload-hops': 28,
  'replicas/upload-interleavings': 39,
  'unit/adapters/blobs-s3/credential-providers': 16,
  'unit/adapters/blobs-s3/s3-download': 5,
  'unit/adapters/blobs-s3/s3-retries': 10,
  'unit/adapters/identity-remote/key-set': 7,
  'unit/adapters/identity-remote/local-tokens': 5,
  'unit/adapters/metadata-sql/sqlite-commits': 5,
  'unit/app/command-line-migrate': 11,
  'unit/app/command-line-move': 14,
  'unit/app/command-line-secrets': 5,
  'unit/app/modules-for-s3': 4,
  'unit/app/store-move/copy-blobs': 5,
  'unit/identity/failure-limits': 4,
  'unit/identity/identity-by-credential': 5,
  'unit/oci/repository-pattern': 4,
}
const usualSeconds = 1
const groupSecondsMax = 40

/**
 * Each group runs in a process of its own. A group has files that follow each other by name, because files about one subject
 * share the servers that they start. The longest group comes first, so that no process is left with a long one at the end.
 */
function listGroups() {
  const files = readdirSync(join(root, 'test'), { recursive: true })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.test.ts') && !leftToCi.some((start) => path.startsWith(start)))
    .sort()
  const groups = []
  for (const path of files) {
    const seconds = slowFiles[path.replace('.test.ts', '')] ?? usualSeconds
    if (groups.length === 0 || groups.at(-1).seconds + seconds > groupSecondsMax) groups.push({ seconds: 0, paths: [] })
    groups.at(-1).seconds += seconds
    groups.at(-1).paths.push(`./test/${path}`)
  }
  return groups.sort((one, other) => other.seconds - one.seconds).map(({ paths }) => bunTest(paths))
}

const memoryDisk = '/dev/shm'
/** Less than this leaves no room for the tests of large blobs. */
const memoryBytesMin = 6 * 1024 ** 3

const filters = process.argv.slice(2)

/**
 * A run of all tests keeps its temporary files in memory, because tests on a disk spend most of their time in fsync. CI runs
 * the same tests on the disk, and so does `TMPDIR=/tmp npm test`. Single tests run on the disk: podman refuses the long paths
 * of a folder within the folder.
 */
const isInMemory = filters.length === 0 && hasMemoryDisk()
const folder = mkdtempSync(join(isInMemory ? memoryDisk : tmpdir(), 'berth-npm-test-'))
// PostgreSQL runs as another user and must get through.
chmodSync(folder, 0o711)
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

function hasMemoryDisk() {
  if (process.env.CI || process.env.TMPDIR || process.platform !== 'linux') return false
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[1] === memoryDisk)
  if (mount === undefined || /[ ,]noexec[ ,]/.test(mount)) return false
  const { bavail, bsize } = statfsSync(memoryDisk)
  return (
    Math.min(bavail * bsize, process.availableMemory === undefined ? freemem() : process.availableMemory()) >=
    memoryBytesMin
  )
}

let failed = 0
runAll()

async function runAll() {
  if (filters.length === 0) await runAtOnce([...checks, ...listGroups()])
  else if (filters[0] === '--checks-only') await runAtOnce(checks)
  else await run(...bunTest(filters), 'inherit').ended
  process.exitCode = failed === 0 ? 0 : 1
}

function bunTest(paths) {
  const shown = paths.length <= 2 ? paths.join(' ') : `${paths[0]} ... ${paths.at(-1)}, ${paths.length} files`
  return [`tests (bun test ${shown})`, ['test', '--timeout', '60000', ...paths]]
}

function run(name, args, output) {
  console.error(`\n--- ${name}`)
  const env = {
    ...process.env,
    NODE_ENV: 'test',
    BUN_OPTIONS: `--preload=${join(root, 'test', 'support', 'identity', 'cheap-passwords.ts')}`,
    ...(isInMemory ? { TMPDIR: folder } : {}),
  }
  const child = spawn(bun, args, { cwd: root, stdio: ['inherit', output, output], env })
  const ended = new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) =>
      resolve(code === 0 ? undefined : `ended with ${code === null ? signal : code}`),
    )
  }).then((fault) => {
    if (fault === undefined) return
    failed += 1
    console.error(`--- ${name}: FAILED (${fault})`)
  })
  return { child, ended }
}

/** Prints the output of a process when it has ended, so that the lines of two processes are not mixed. */
async function runAtOnce(commands) {
  const waiting = [...commands]
  const running = new Set()
  const show = ({ name, file }) => {
    console.error(`\n--- output of ${name}`)
    process.stdout.write(readFileSync(file))
  }
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [name, args] = next
      const file = join(folder, `output-${waiting.length}`)
      const descriptor = openSync(file, 'w')
      const started = { name, file, ...run(name, args, descriptor) }
      closeSync(descriptor)
      running.add(started)
      await started.ended
      running.delete(started)
      show(started)
    }
  }
  // A run that is stopped shows which tests were running, and leaves no process behind.
  const stop = () => {
    for (const { child } of running) child.kill()
    for (const one of running) show(one)
    process.exit(1)
  }
  process.once('SIGTERM', stop).once('SIGINT', stop)
  await Promise.all(Array.from({ length: processesMax }, work))
}
