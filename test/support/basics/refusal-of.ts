import { type Refusal, RegistryRefusal } from '../../../src/oci/errors.ts'

/** The name of the refusal that `act` ends with, or undefined when it ends well. Any other error is passed on. */
export function refusalOf(act: () => unknown): Refusal | undefined {
  return catchRefusal(act)?.refusal
}

/** The refusal itself, for its details. */
export function catchRefusal(act: () => unknown): RegistryRefusal | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    if (error instanceof RegistryRefusal) return error
    throw error
  }
}
