import type { GarbageAges } from '../ports/garbage.ts'
import type { Config } from './settings.ts'

const dayMs = 86_400_000

/** How long a finished upload is remembered, so that a client that lost the answer can ask again. */
const uploadDoneMs = 3_600_000

/**
 * A sound blob store removes a batch much faster. One in trouble may take longer; then somebody else tries the rest too:
 * a waste, and no harm.
 */
const holdMs = 300_000

/** What is younger may belong to an upload that has not been noted yet. */
export function strayAgeMs({ uploadMaxMs }: Config): number {
  return uploadMaxMs + dayMs
}

export function garbageAges(config: Config): GarbageAges {
  const { leaseMs, quarantineMs, uploadIdleMs, uploadMaxMs } = config
  return { leaseMs, quarantineMs, uploadIdleMs, uploadMaxMs, uploadDoneMs, holdMs }
}
