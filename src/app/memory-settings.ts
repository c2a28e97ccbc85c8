import { byteCount, duration, setting } from './setting-kinds.ts'

/** One caller gets at most this fraction (1/4) of the memory. */
export const sharesOfMemory = 4

export const memorySettings = {
  memoryBytes: setting(
    'limits.memory',
    byteCount('256MiB', '32MiB'),
    'Memory for request bodies and answers that are not streamed, for all requests together. One caller gets at most a quarter of it.',
  ),
  memoryWaitMs: setting(
    'limits.memory_wait',
    duration('20s', '1s', '1h'),
    'How long a request waits for free memory (`limits.memory`) before it gets 503.',
  ),
  memoryHoldMs: setting(
    'limits.memory_hold',
    duration('10s', '1s', '1h'),
    'While other requests wait for memory, a client that takes longer than this to send its body or to read its answer is disconnected.',
  ),
} as const

interface SizeConfig {
  readonly workers: number | 'auto'
  readonly memoryBytes: number
  readonly manifestBytes: number
  readonly referrersBytes: number
}

/** The largest body and the largest answer must fit into the share of one caller. */
export function findMemoryContradictions(config: SizeConfig): string[] {
  const { memoryBytes, manifestBytes, referrersBytes } = config
  const workers = config.workers === 'auto' ? 1 : config.workers
  const sizes = { 'limits.manifest_bytes': manifestBytes, 'limits.referrers_bytes': referrersBytes }
  return Object.entries(sizes)
    .filter(([, bytes]) => bytes * sharesOfMemory * workers > memoryBytes)
    .map(([name]) => {
      const times = sharesOfMemory * workers
      const ofWorker = workers === 1 ? 'limits.memory' : `the memory of a worker (limits.memory / server.workers)`
      return `limits.memory must be at least ${times} times ${name}, because one caller gets at most 1/${sharesOfMemory} of ${ofWorker}`
    })
}
