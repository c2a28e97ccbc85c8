import { rootCauseOf } from '../lib/root-cause.ts'
import { describeRefusal, RegistryRefusal } from '../oci/errors.ts'

/** An error in one line: what failed, and why. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof RegistryRefusal && error.details.length > 0) {
    if (error.details.some(({ reason }) => reason !== undefined)) return describeRefusal(error)
    return `${error.message}: ${error.details.flatMap((detail) => Object.values(detail)).join(', ')}`
  }
  const cause = rootCauseOf(error)
  return cause === undefined ? error.message : `${error.message}: ${cause.message}`
}
