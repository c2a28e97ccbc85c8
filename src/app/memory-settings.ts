import { smallAnswerBytes, unreadBodyBytesMax } from '../http/request-memory.ts'
import { ByteBudget } from '../lib/byte-budget.ts'
import { byteCount, duration, setting } from './setting-kinds.ts'

/** One caller gets at most one such part of the memory. */
const shares = 4
/** Small requests have one such part of the memory for themselves. */
const partsForSmall = 16

export const memorySettings = {
  memoryBytes: setting(
    'limits.memory',
    byteCount('256MiB', '32MiB'),
    'Memory for request bodies and answers that are not streamed, for all requests together; one caller gets at most a quarter.',
  ),
  memoryWaitMs: setting(
    'limits.memory_wait',
    duration('20s', '1s', '1h'),
    'How long a request waits for a part of that memory before it gets 503.',
  ),
  memoryHoldMs: setting(
    'limits.memory_hold',
    duration('10s', '1s', '1h'),
    'While others wait for that memory, a client that takes longer than this to send its body or to read its answer is cut.',
  ),
} as const

interface MemoryConfig {
  readonly memoryBytes: number
  readonly memoryWaitMs: number
  readonly memoryHoldMs: number
}

interface SizeConfig {
  readonly memoryBytes: number
  readonly manifestBytes: number
  readonly referrersBytes: number
}

/** The largest body and the largest answer must fit the part of one caller. */
export function findMemoryContradictions({ memoryBytes, manifestBytes, referrersBytes }: SizeConfig): string[] {
  const sizes = { 'limits.manifest_bytes': manifestBytes, 'limits.referrers_bytes': referrersBytes }
  return Object.entries(sizes)
    .filter(([, bytes]) => bytes * shares > memoryBytes)
    .map(([name]) => `limits.memory must be at least ${shares} times ${name}: one caller gets that part of it`)
}

export function openMemoryBudget({ memoryBytes, memoryWaitMs, memoryHoldMs }: MemoryConfig): ByteBudget {
  return new ByteBudget({
    bytesMax: memoryBytes,
    bytesPerHolderMax: Math.floor(memoryBytes / shares),
    bytesForSmall: Math.floor(memoryBytes / partsForSmall),
    smallBytes: smallAnswerBytes,
    waitMs: memoryWaitMs,
    bytesWaitingMax: Math.max(unreadBodyBytesMax, Math.floor(memoryBytes / shares)),
    bytesWaitingPerHolderMax: Math.max(unreadBodyBytesMax, Math.floor(memoryBytes / shares / shares)),
    holdMs: memoryHoldMs,
  })
}
