import type { Config } from '../settings.ts'

// Limits "per server" hold for all processes of a server together. Each process gets a share, so that no process must ask
// another one at each request.

/** The supervisor needs few connections to the database: it only runs the background jobs. */
const supervisorConnections = 2
const connectionsMin = 2
const requestsMin = 4
const buffersMin = 2

/** The settings of one worker. */
export function shareOfWorker(config: Config): Config {
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
  if (workers === 1) return []
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
