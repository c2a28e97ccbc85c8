// The Bun programs that are part of the built files. Their versions and hashes are those of the lockfile.
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dir, '..', '..')

export interface Target {
  /** Part of the name of the built file. */
  readonly name: string
  /** The name of the target in Bun, and the package that contains its program. */
  readonly runtime: string
}

export const targets: readonly Target[] = [
  { name: 'linux-x64', runtime: 'bun-linux-x64' },
  { name: 'linux-x64-musl', runtime: 'bun-linux-x64-musl' },
  { name: 'linux-arm64', runtime: 'bun-linux-aarch64' },
  { name: 'linux-arm64-musl', runtime: 'bun-linux-aarch64-musl' },
]

export interface LockedPackage {
  readonly version: string
  readonly integrity?: string
  readonly license?: string
  readonly dev?: boolean
  readonly optional?: boolean
}

export function readLockfile(): Readonly<Record<string, LockedPackage>> {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
}

const cacheFolder = join(root, 'node_modules', '.cache', 'berth-build')

const installedFolder = join(root, 'node_modules', '@oven')

/** Whether npm has installed this program, and no other. Older versions of npm install those for glibc and for musl. */
function isInstalled(runtime: string): boolean {
  const packages = existsSync(installedFolder) ? readdirSync(installedFolder) : []
  return packages.length === 1 && packages[0] === runtime
}

/** The path of the program. This script runs on the installed one. Programs for other machines are fetched once, from the package registry that npm uses. */
export async function ensureRuntime({ runtime }: Target): Promise<string> {
  if (isInstalled(runtime)) return process.execPath
  const packageName = `@oven/${runtime}`
  const locked = readLockfile()[`node_modules/${packageName}`]
  if (locked?.integrity === undefined) throw new Error(`package-lock.json has no hash of ${packageName}`)
  const path = join(cacheFolder, `${runtime}-${locked.version}`)
  if (existsSync(path)) return path
  mkdirSync(cacheFolder, { recursive: true })
  const folder = mkdtempSync(join(cacheFolder, 'fetch-'))
  try {
    await run(['npm', 'pack', '--silent', `${packageName}@${locked.version}`, '--pack-destination', folder])
    const [archive] = [...new Bun.Glob('*.tgz').scanSync(folder)]
    if (archive === undefined) throw new Error(`npm fetched no archive of ${packageName}`)
    checkIntegrity(packageName, join(folder, archive), locked.integrity)
    await run(['tar', '--extract', '--gzip', '--file', join(folder, archive), '--directory', folder, 'package/bin/bun'])
    const program = join(folder, 'package', 'bin', 'bun')
    chmodSync(program, 0o755)
    renameSync(program, path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return path
}

function checkIntegrity(packageName: string, path: string, integrity: string): void {
  const actual = `sha512-${createHash('sha512').update(readFileSync(path)).digest('base64')}`
  if (actual !== integrity) throw new Error(`${packageName} has the hash ${actual}; package-lock.json has ${integrity}`)
}

export async function run(command: readonly string[], cwd = root): Promise<void> {
  const child = Bun.spawn([...command], { cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [printed, complaint] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed:\n${printed}${complaint}`)
}
