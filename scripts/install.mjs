// Installs the packages of the lockfile once. It is plain JavaScript, because it must run on Node 20 before anything is installed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
const stampPath = join(modules, '.berth-installed.json')

/** Contains the id of the process that installs packages. It is not in `node_modules`, because `npm ci` empties that. */
const lockPath = join(root, '.berth-installing')
const pollMs = 200
const waitMsMax = 600_000

/** Identifies the installed packages. If a pull changes the lockfile, packages are installed again. */
function lockfileHash() {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
}

function readStamp() {
  if (!existsSync(stampPath)) return undefined
  return JSON.parse(readFileSync(stampPath, 'utf8'))
}

/** A server often runs as a user that may only read this folder. */
function checkWritable() {
  try {
    accessSync(existsSync(modules) ? modules : root, constants.W_OK)
  } catch {
    console.error(
      `Berth: packages are missing, and this user may not install them in ${root}. Run this once as the owner of that folder: cd ${root} && npm run berth -- --version`,
    )
    process.exit(1)
  }
}

/** Installs missing packages: those of the server, and with `dev` those of the tests. */
export function ensureInstalled({ dev }) {
  const lockfile = lockfileHash()
  const isInstalled = () => {
    const stamp = readStamp()
    return stamp !== undefined && stamp.lockfile === lockfile && (stamp.dev || !dev)
  }
  if (isInstalled()) return
  checkWritable()
  lock()
  process.on('exit', unlock)
  // Another process may have installed them in the meantime.
  if (!isInstalled()) install(dev, lockfile)
  unlock()
}

/** Waits while another process installs packages. The lock of a process that died is removed. */
function lock() {
  for (let waitedMs = 0; !tryLock(); waitedMs += pollMs) {
    if (waitedMs === 0) console.error('Another process is installing the packages. Waiting for it ...')
    if (waitedMs >= waitMsMax) {
      console.error(`Berth: waited too long. If no other process is installing packages, delete ${lockPath}.`)
      process.exit(1)
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pollMs)
    removeDeadLock()
  }
}

function tryLock() {
  try {
    writeFileSync(lockPath, String(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    // The folder of the checkout is read-only, and `node_modules` is not. Such an installation has no lock.
    if (['EACCES', 'EPERM', 'EROFS'].includes(error.code)) return true
    throw error
  }
}

function removeDeadLock() {
  const pid = readPid(lockPath)
  if (isAlive(pid)) return
  // Only one process succeeds in moving the file. It may have moved a newer lock, which it puts back.
  const moved = `${lockPath}.${process.pid}`
  try {
    renameSync(lockPath, moved)
    if (readPid(moved) !== pid) renameSync(moved, lockPath)
    else rmSync(moved)
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
}

/** Undefined while the file is being created or removed. */
function readPid(path) {
  try {
    return Number(readFileSync(path, 'utf8')) || undefined
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function isAlive(pid) {
  if (pid === undefined) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code !== 'ESRCH'
  }
}

function unlock() {
  if (readPid(lockPath) === process.pid) rmSync(lockPath, { force: true })
}

function install(dev, lockfile) {
  const what = dev ? 'the packages that Berth and its tests need' : 'the packages that Berth needs'
  console.error(`Installing ${what} (once; a few seconds) ...`)
  const npm = process.env.npm_execpath
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error', ...(dev ? [] : ['--omit=dev'])]
  const [command, argv] = npm ? [process.execPath, [npm, ...args]] : ['npm', args]
  const done = spawnSync(command, argv, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  if (done.status !== 0) {
    console.error('Berth: npm ci failed; see above.')
    process.exit(done.status === null ? 1 : done.status)
  }
  mkdirSync(modules, { recursive: true })
  writeFileSync(stampPath, JSON.stringify({ lockfile, dev }))
}

/** The Bun of the lockfile, never one on the PATH. */
export function bunPath() {
  return join(modules, 'bun', 'bin', 'bun.exe')
}
