import { smallAnswerBytes, unreadBodyBytesMax } from '../http/request-memory.ts'
import { ByteBudget } from '../lib/byte-budget.ts'
import { sharesOfMemory } from './memory-settings.ts'
import type { Config } from './settings.ts'

/** This fraction (1/16) of the memory is reserved for small requests. */
const partsForSmall = 16

export function openMemoryBudget({ memoryBytes, memoryWaitMs, memoryHoldMs }: Config): ByteBudget {
  return new ByteBudget({
    bytesMax: memoryBytes,
    bytesPerHolderMax: Math.floor(memoryBytes / sharesOfMemory),
    bytesForSmall: Math.floor(memoryBytes / partsForSmall),
    smallBytes: smallAnswerBytes,
    waitMs: memoryWaitMs,
    bytesWaitingMax: Math.max(unreadBodyBytesMax, Math.floor(memoryBytes / sharesOfMemory)),
    bytesWaitingPerHolderMax: Math.max(unreadBodyBytesMax, Math.floor(memoryBytes / sharesOfMemory / sharesOfMemory)),
    holdMs: memoryHoldMs,
  })
}
