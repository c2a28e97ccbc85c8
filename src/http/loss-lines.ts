import type { Log } from '../lib/log.ts'
import type { LostBytes } from '../oci/errors.ts'
import type { Principal } from '../ports/identity.ts'

/** The request that found the loss. */
interface Finder {
  readonly id: string
  readonly principal: Principal | undefined
}

/** One line for each blob or upload whose stored bytes are found lost. */
export function logLoss(log: Log, lost: LostBytes, { id, principal }: Finder): void {
  const message =
    'upload' in lost
      ? 'the stored bytes of an unfinished upload are missing or damaged; the upload is removed, and the client must begin again'
      : 'the stored bytes of a blob are missing or damaged; the next push of the blob replaces them'
  log.write('error', message, { id, account: principal?.account, ...lost })
}
