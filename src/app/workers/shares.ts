import { availableParallelism, totalmem } from 'node:os'
import { sharesOfMemory } from '../memory-settings.ts'
import type { Config } from '../settings.ts'

// Limits "per server" hold for all processes of a server together. Each process gets a share, so that no process must ask
// another one at each request.

/** The supervisor needs few connections to the database: it only runs the background jobs. */
const supervisorConnections = 2
const connectionsMin = 2
const requestsMin = 4
const buffersMin = 2

/**
 * With `auto`, each worker gets at least so much. An operator may choose smaller shares. On two cores, two workers used more
 * CPU time for each request than one process, and stored fewer small images per second.
 */
const auto = {
  workersMax: 8,
  coresMin: 3,
  memoryBytes: 32 * 1024 ** 2,
  databaseConnections: 4,
  s3Requests: 8,
  s3Buffers: 4,
}
/** What a process needs besides its share of `limits.memory`. */
const ownMemoryBytes = 96 * 1024 ** 2

/** The settings of a server whose number of workers is known. */
export type ServerConfig = Config & { readonly workers: number }

interface Machine {
  readonly platform: string
  /** Cores that this process may use. A quota of a container counts. */
  readonly cores: number
  /** Memory of the machine or, if it is less, of the container. */
  readonly memoryBytes: number
}

export function withWorkerCount(config: Config, machine: Machine = thisMachine()): ServerConfig {
  return { ...config, workers: config.workers === 'auto' ? countWorkers(config, machine) : config.workers }
}

function thisMachine(): Machine {
  return {
    platform: process.platform,
    cores: availableParallelism(),
    memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
  }
}

function countWorkers(config: Config, { platform, cores, memoryBytes }: Machine): number {
  if (platform !== 'linux' || cores < auto.coresMin) return 1
  const largest = Math.max(config.manifestBytes, config.referrersBytes)
  const limits = [
    auto.workersMax,
    cores,
    // The supervisor is one more process.
    (memoryBytes - config.memoryBytes) / ownMemoryBytes - 1,
    config.memoryBytes / Math.max(auto.memoryBytes, sharesOfMemory * largest),
  ]
  if (config.databaseUrl !== undefined) {
    limits.push((config.databaseConnections - supervisorConnections) / auto.databaseConnections)
  }
  if (config.bucket !== undefined) limits.push(config.s3Requests / auto.s3Requests, config.s3Buffers / auto.s3Buffers)
  return Math.max(1, Math.floor(Math.min(...limits)))
}

/** The settings of one worker. */
export function shareOfWorker(config: ServerConfig): ServerConfig {
  const { workers } = config
  const share = (total: number, min: number) => Math.max(min, Math.floor(total / workers))
  return {
    ...config,
    // 0 stands for the descriptor limit, which the system applies to each process.
    connectionsMax: config.connectionsMax === 0 ? 0 : share(config.connectionsMax, 1),
    memoryBytes: share(config.memoryBytes, 1),
    databaseConnections: share(config.databaseConnections - supervisorConnections, connectionsMin),
    databaseQueue: share(config.databaseQueue, 0),
    authCalls: share(config.authCalls, 1),
    authQueue: share(config.authQueue, 0),
    logBuffer: share(config.logBuffer, 1),
    s3Requests: share(config.s3Requests, requestsMin),
    s3Queue: share(config.s3Queue, 0),
    s3Buffers: share(config.s3Buffers, buffersMin),
  }
}

/** The settings of the supervisor. */
export function shareOfSupervisor(config: Config): Config {
  return { ...config, databaseConnections: Math.min(config.databaseConnections, supervisorConnections) }
}

/** Settings that do not fit to the number of workers. */
export function findWorkerContradictions(config: Config, platform: string = process.platform): string[] {
  const { workers, databaseUrl, databaseConnections } = config
  if (workers === 1 || workers === 'auto') return []
  const problems: string[] = []
  if (platform !== 'linux') {
    problems.push('server.workers must be 1 on this system: only Linux distributes connections over several processes')
  }
  const connectionsNeeded = supervisorConnections + workers * connectionsMin
  if (databaseUrl !== undefined && databaseConnections < connectionsNeeded) {
    problems.push(`metadata.connections must be at least ${connectionsNeeded} with server.workers ${workers}`)
  }
  return problems
}
