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
