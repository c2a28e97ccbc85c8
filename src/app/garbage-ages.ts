import type { GarbageAges } from '../ports/garbage.ts'
import type { Config } from './settings.ts'

/** How long a finished upload is remembered, so that a client that lost the answer can ask again. */
const uploadDoneMs = 3_600_000

export function garbageAges(config: Config): GarbageAges {
  const { leaseMs, quarantineMs, uploadIdleMs, uploadMaxMs } = config
  return { leaseMs, quarantineMs, uploadIdleMs, uploadMaxMs, uploadDoneMs }
}
