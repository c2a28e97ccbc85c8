import type { Attempt, AttemptResult } from '../../identity/failure-limits.ts'
import type { Refusal, RefusalDetail, Unavailable } from '../../oci/errors.ts'
import type { UploadId } from '../../ports/uploads.ts'
import type { ServerConfig } from './shares.ts'

// The calls between the supervisor and a worker. The arguments are sent as messages, so they contain only data.

/** The hidden command of the command line that runs a worker. */
export const workerCommand = 'worker'

/** What a worker calls in its supervisor. */
export interface SupervisorCalls {
  /** Begins an attempt with a credential, under the limits of the whole server. */
  beginAttempt(attempt: Attempt): Promise<BegunAttempt>
  endAttempt(ended: { readonly ticket: number; readonly result: AttemptResult }): void
  /** Empties the caches of credentials in the other workers. */
  clearIdentities(argument: undefined): Promise<void>
  /** Ends the request of another worker that writes to the upload; see `EndElsewhere`. */
  endWriter(writer: WriterToEnd): Promise<boolean>
}

/** What the supervisor calls in a worker. */
export interface WorkerCalls {
  /** Opens the stores and the port. `config` contains the share of this worker. */
  start(start: { readonly config: ServerConfig; readonly port: number }): Promise<void>
  /** Reports "not ready", drains and ends the process. */
  stop(argument: undefined): void
  clearIdentities(argument: undefined): Promise<void>
  endWriter(writer: WriterToEnd): Promise<boolean>
  /** Shows that the event loop of the worker runs. */
  beat(argument: undefined): void
}

export interface WriterToEnd {
  readonly id: UploadId
  /** Only if the connection of the writer looks dead. */
  readonly onlyIfDead: boolean
}

export type BegunAttempt =
  | { readonly ticket: number }
  | { readonly refusal: Refusal; readonly details: readonly RefusalDetail[] }
  | { readonly unavailable: Unavailable['dependency'] }
