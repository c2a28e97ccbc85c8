import { type Refusal, RegistryRefusal } from '../../../src/oci/errors.ts'

/** How a promise ends, in a word: for expectations about rows that a store must refuse, whatever the engine says. */
export function outcomeOf(promise: Promise<unknown>): Promise<'done' | 'refused'> {
  return promise.then(
    () => 'done' as const,
    () => 'refused' as const,
  )
}

/** The error with which a promise ends; ends the test when there is none. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown
  try {
    value = await promise
  } catch (error) {
    return error
  }
  throw new Error(`expected a rejection, got ${JSON.stringify(value)}`)
}

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
