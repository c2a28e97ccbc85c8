import { RegistryRefusal } from '../oci/errors.ts'

/** Why a request ended before its body did, and how many bytes of an upload are safe: fields of its log line. */
export interface Interruption {
  readonly interrupted: unknown
  readonly kept: unknown
}

export function findInterruption(error: unknown): Interruption | undefined {
  if (!(error instanceof RegistryRefusal)) return undefined
  const { refusal, message, details } = error
  const { reason, kept } = details[0] ?? {}
  const hasEnded = refusal === 'body-incomplete' || refusal === 'body-too-slow'
  // An upload that is unknown for a reason was there when the request began.
  if (!hasEnded && (refusal !== 'upload-unknown' || reason === undefined)) return undefined
  return { interrupted: reason ?? message, kept }
}
