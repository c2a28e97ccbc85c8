// A PostgreSQL server whose data is kept between commands, because it takes long to generate.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

export interface ScaleServer {
  readonly pid: number
  readonly logPath: string
  urlOf(database: string): string
  stop(): Promise<void>
}

// PostgreSQL refuses to run as root. The user `nobody` exists on every system.
const nobody = 65_534
const isRoot = process.getuid?.() === 0
const debianPrograms = '/usr/lib/postgresql/15/bin'
const identity = isRoot ? { uid: nobody, gid: nobody } : {}

/**
 * The data need not survive a crash: no fsync, little logging, and no autovacuum during measurements. The settings that
 * the planner uses have their defaults, so the plans are those of an untuned installation.
 */
const settings = {
  listen_addresses: '127.0.0.1',
  max_connections: '200',
  shared_buffers: process.env['SHARED_BUFFERS'] ?? '3GB',
  fsync: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '6GB',
  checkpoint_timeout: '30min',
  autovacuum: 'off',
  jit: 'on',
}

export async function startScaleServer(folder: string): Promise<ScaleServer> {
  const programs = process.env['POSTGRES_BIN'] ?? debianPrograms
  mkdirSync(folder, { recursive: true })
  if (isRoot) chownSync(folder, nobody, nobody)
  const dataDir = join(folder, 'data')
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, LC_ALL: 'C' }
  if (!existsSync(join(dataDir, 'PG_VERSION'))) {
    const words = ['-D', dataDir, '-U', 'berth', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync']
    const made = spawnSync(join(programs, 'initdb'), words, { ...identity, env, encoding: 'utf8' })
    if (made.status !== 0) throw new Error(`initdb failed: ${made.error?.message ?? made.stderr}`)
  }
  const logPath = join(folder, 'postgres.log')
  const running = findRunning(dataDir)
  if (running !== undefined) return { ...running, logPath, stop: async () => undefined }
  const port = await freePort()
  const log = openSync(logPath, 'a')
  const chosen = Object.entries({ ...settings, port: String(port), unix_socket_directories: folder })
  const words = ['-D', dataDir, ...chosen.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const child = spawn(join(programs, 'postgres'), words, { ...identity, env, stdio: ['ignore', log, log] })
  process.once('SIGTERM', () => child.kill('SIGINT')).once('SIGINT', () => child.kill('SIGINT'))
  const urlOf = (database: string) => `postgres://berth@127.0.0.1:${port}/${database}`
  await firstAnswer(child, urlOf('postgres'))
  return {
    pid: child.pid ?? 0,
    logPath,
    urlOf,
    async stop() {
      if (child.exitCode !== null) return
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGINT')
      await ended
    },
  }
}

/** A server that `serve` has started in this folder. It is used, and not stopped. */
function findRunning(dataDir: string): Pick<ScaleServer, 'pid' | 'urlOf'> | undefined {
  const pidFile = join(dataDir, 'postmaster.pid')
  if (!existsSync(pidFile)) return undefined
  const [pid, , , port] = readFileSync(pidFile, 'utf8').split('\n').map(Number)
  if (pid === undefined || !existsSync(`/proc/${pid}`)) return undefined
  return { pid, urlOf: (database) => `postgres://berth@127.0.0.1:${port}/${database}` }
}

async function firstAnswer(child: ChildProcess, url: string): Promise<void> {
  for (;;) {
    const sql = new Bun.SQL({ url, max: 1 })
    try {
      await sql.unsafe('SELECT 1')
      return
    } catch (error) {
      if (child.exitCode !== null) throw new Error('PostgreSQL did not start: see postgres.log', { cause: error })
      await Bun.sleep(200)
    } finally {
      await sql.close()
    }
  }
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
