// `npm test`: installs what is missing, then checks format, lint and types, and runs every test that needs no other server.
import './node-version.mjs'
import { spawn } from 'node:child_process'
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { bunPath, ensureInstalled, root } from './install.mjs'

ensureInstalled({ dev: true })

const bun = bunPath()
const memoryDisk = '/dev/shm'
const checks = [
  [
    'format and lint (biome)',
    [join('node_modules', '@biomejs', 'biome', 'bin', 'biome'), 'check', '--error-on-warnings', '.'],
  ],
  ['types (tsc)', [join('node_modules', 'typescript', 'bin', 'tsc'), '--noEmit']],
]
/** Those of one line run one after the other; the lines run side by side, since the tests of faults mostly wait. */
const tests = [
  ['house.test.ts', 'docs', 'deploy', 'unit', 'contract', 'api', 'conformance', 'bad-input', 'fuzz'],
  ['faults', 'replicas'],
].map((folders) => bunTest(folders.map((name) => `./test/${name}`)))

/** Less than this leaves no room for the tests of large blobs. */
const memoryBytesMin = 6 * 1024 ** 3

/**
 * The folder of all temporary files. It is in memory, because tests on a disk spend most of their time in fsync. CI runs the
 * same tests on the disk, and so does `TMPDIR=/tmp npm test`.
 */
const folder = makeFolder()
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

function makeFolder() {
  const made = mkdtempSync(join(hasMemoryDisk() ? memoryDisk : tmpdir(), 'berth-npm-test-'))
  // PostgreSQL runs as another user and must get through.
  chmodSync(made, 0o711)
  return made
}

function hasMemoryDisk() {
  if (process.env.CI || process.env.TMPDIR || process.platform !== 'linux') return false
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[1] === memoryDisk)
  if (mount === undefined || /[ ,]noexec[ ,]/.test(mount)) return false
  const { bavail, bsize } = statfsSync(memoryDisk)
  return Math.min(bavail * bsize, process.availableMemory?.() ?? freemem()) >= memoryBytesMin
}

let failed = 0
const filters = process.argv.slice(2)
runAll()

async function runAll() {
  if (filters.length === 0 || filters[0] === '--checks-only') {
    for (const [name, args] of checks) await run(name, args, 'inherit').ended
  }
  if (filters.length === 0) await sideBySide(tests)
  else if (filters[0] !== '--checks-only') await run(...bunTest(filters), 'inherit').ended
  process.exitCode = failed === 0 ? 0 : 1
}

function bunTest(paths) {
  return [`tests (bun test ${paths.join(' ')})`, ['test', '--timeout', '60000', ...paths]]
}

function run(name, args, output) {
  console.error(`\n--- ${name}`)
  const env = { ...process.env, NODE_ENV: 'test', TMPDIR: folder }
  const child = spawn(bun, args, { cwd: root, stdio: ['inherit', output, output], env })
  const ended = new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) =>
      resolve(code === 0 ? undefined : `ended with ${code === null ? signal : code}`),
    )
  }).then((trouble) => {
    if (trouble === undefined) return
    failed += 1
    console.error(`--- ${name}: FAILED (${trouble})`)
  })
  return { child, ended }
}

/** The first is seen while it runs; what the others print follows when it has ended, so that no lines are mixed. */
async function sideBySide([first, ...others]) {
  const hidden = others.map(([name, args], index) => {
    const file = join(folder, String(index))
    const descriptor = openSync(file, 'w')
    const started = run(name, args, descriptor)
    closeSync(descriptor)
    return { name, file, ...started }
  })
  const show = ({ name, file }) => {
    console.error(`\n--- what was printed by ${name}`)
    process.stdout.write(readFileSync(file))
  }
  const seen = run(...first, 'inherit')
  // Whoever ends us wants to know what hung, and nothing of it goes on.
  const giveUp = () => {
    for (const { child } of [seen, ...hidden]) child.kill()
    hidden.forEach(show)
    process.exit(1)
  }
  process.once('SIGTERM', giveUp).once('SIGINT', giveUp)
  await seen.ended
  for (const one of hidden) {
    await one.ended
    show(one)
  }
}
