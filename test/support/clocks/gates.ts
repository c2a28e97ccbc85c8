// Points at which a test holds the code, or makes it fail, to force one interleaving out of the many.
import type { MetadataStore, Tables } from '../../../src/ports/metadata-store.ts'

/** A closed gate: a caller waits at it, and the test knows when one has arrived. */
export class Gate {
  #open = (): void => undefined
  #arrive = (): void => undefined
  readonly #opened = new Promise<void>((resolve) => {
    this.#open = resolve
  })
  /** Resolves when the code has come to the gate. */
  readonly reached = new Promise<void>((resolve) => {
    this.#arrive = resolve
  })

  readonly pass = async (): Promise<void> => {
    this.#arrive()
    await this.#opened
  }

  open(): void {
    this.#open()
  }
}

type Noun = keyof Tables

/** `call` asks the store, with the given arguments or with others. */
type Around = (
  call: (...others: readonly unknown[]) => Promise<unknown>,
  values: readonly unknown[],
  tables: Tables,
) => Promise<unknown>

/** The same store, where one method of one noun does what `act` says, inside transactions too. */
export function around(metadata: MetadataStore, noun: Noun, method: string, act: Around): MetadataStore {
  const changed = (tables: Tables) => aroundCall(tables[noun], method, (call, values) => act(call, values, tables))
  return new Proxy(metadata, {
    get(target, key) {
      if (key === noun) return changed(target)
      if (key !== 'transaction') return bound(target, key)
      return (work: (tables: Tables) => Promise<unknown>) =>
        target.transaction((tables) => work({ ...tables, [noun]: changed(tables) }))
    },
  })
}

/** As `around`, where something else happens first: it waits at a gate, or fails. */
export function before(metadata: MetadataStore, noun: Noun, method: string, act: () => Promise<void>): MetadataStore {
  return around(metadata, noun, method, (call, values) => act().then(() => call(...values)))
}

/** As `around`, where something else happens when the method has returned. */
export function after(metadata: MetadataStore, noun: Noun, method: string, act: () => Promise<void>): MetadataStore {
  return around(metadata, noun, method, async (call, values) => {
    const result = await call(...values)
    await act()
    return result
  })
}

/** The same object, where something else happens before each call of one method, such as `transaction`. */
export function beforeCall<T extends object>(target: T, method: string, act: () => Promise<void>): T {
  return aroundCall(target, method, (call, values) => act().then(() => call(...values)))
}

/** The same store, where something else happens after each commit and before the caller gets the result. */
export function afterCommit(metadata: MetadataStore, act: () => Promise<void>): MetadataStore {
  return aroundCall(metadata, 'transaction', async (call, values) => {
    const result = await call(...values)
    await act()
    return result
  })
}

/** The same object, where one method does what `act` says. */
export function aroundCall<T extends object>(
  whole: T,
  method: string,
  act: (call: (...others: readonly unknown[]) => Promise<unknown>, values: readonly unknown[]) => Promise<unknown>,
): T {
  return new Proxy(whole, {
    get(target, key) {
      const own = bound(target, key)
      if (key !== method || typeof own !== 'function') return own
      return (...values: unknown[]) => act(async (...others) => own(...others), values)
    },
  })
}

function bound(target: object, key: string | symbol): unknown {
  const own: unknown = Reflect.get(target, key)
  return typeof own === 'function' ? own.bind(target) : own
}

/** For `before` and `after`: the process dies here, as far as the rest of the code can tell. */
export class SimulatedCrash extends Error {}

export async function crash(): Promise<never> {
  throw new SimulatedCrash()
}
