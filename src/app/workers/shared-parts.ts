import type { AttemptLimits } from '../../identity/failure-limits.ts'
import type { EndElsewhere } from '../../registry/upload-writers.ts'

/** What a process shares with the other processes of its server. Empty if the server is one process. */
export interface SharedParts {
  /** A worker leaves to its supervisor what is done once for each server. */
  readonly isWorker?: boolean
  /** How many processes write to the disks. */
  readonly processes?: number
  /** The limits for failed logins of the whole server. */
  readonly failures?: AttemptLimits
  /** Empties the caches of credentials in the other processes. */
  readonly clearElsewhere?: () => Promise<void>
  /** Ends requests of the other processes that write to uploads. */
  readonly endElsewhere?: EndElsewhere
}
