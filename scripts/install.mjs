// Installs the packages of the lockfile once. It is plain JavaScript, because it must run on Node 20 before anything is installed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
const stampPath = join(modules, '.berth-installed.json')

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
  const stamp = readStamp()
  if (stamp !== undefined && stamp.lockfile === lockfile && (stamp.dev || !dev)) return
  checkWritable()

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
