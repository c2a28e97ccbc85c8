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
 * One process of `bun test` runs each group. The tests of faults mostly wait, so one more process runs than there are cores.
 * CI runs one for each core: its disk is slower, and tests with short time limits need room.
 */
const processesMax = process.env.CI ? Math.max(2, availableParallelism()) : availableParallelism() + 1

/** The longest first, so that no process is left with a long group at the end. */
function listGroups() {
  return [
    ['api'],
    ...groupsOfFaults(),
    ['replicas'],
    ['unit'],
    ['contract', 'conformance'],
    ['house.test.ts', 'docs', 'deploy', 'bad-input', 'fuzz'],
  ]
}

const faultFilesPerGroup = 8

/** In the order of their names, because files about one subject share what they start. */
function groupsOfFaults() {
  const files = readdirSync(join(root, 'test', 'faults'))
    .filter((name) => name.endsWith('.test.ts'))
    .sort()
    .map((name) => join('faults', name))
  const groups = []
  while (files.length > 0) groups.push(files.splice(0, faultFilesPerGroup))
  return groups
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
  if (filters.length === 0 || filters[0] === '--checks-only') {
    for (const [name, args] of checks) await run(name, args, 'inherit').ended
  }
  if (filters.length === 0) await runGroups()
  else if (filters[0] !== '--checks-only') await run(...bunTest(filters), 'inherit').ended
  process.exitCode = failed === 0 ? 0 : 1
}

function bunTest(paths) {
  return [`tests (bun test ${paths.join(' ')})`, ['test', '--timeout', '60000', ...paths]]
}

function run(name, args, output) {
  console.error(`\n--- ${name}`)
  const env = { ...process.env, NODE_ENV: 'test', ...(isInMemory ? { TMPDIR: folder } : {}) }
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
async function runGroups() {
  const waiting = listGroups().map((names) => bunTest(names.map((name) => `./test/${name}`)))
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
