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

/** The same store, where one method of one noun first does something else: waits at a gate, or fails. */
export function before(metadata: MetadataStore, noun: Noun, method: string, act: () => Promise<void>): MetadataStore {
  return wrapped(metadata, noun, method, async (call) => {
    await act()
    return call()
  })
}

/** The same store, where one method of one noun does something else when it is done. */
export function after(metadata: MetadataStore, noun: Noun, method: string, act: () => Promise<void>): MetadataStore {
  return wrapped(metadata, noun, method, async (call) => {
    const result = await call()
    await act()
    return result
  })
}

/** The same store, where something else happens before each transaction begins. */
export function beforeTransaction(metadata: MetadataStore, act: () => Promise<void>): MetadataStore {
  return wrappedNoun(metadata, 'transaction', async (call) => {
    await act()
    return call()
  })
}

/** The same store, where something else happens after each commit and before the caller gets the result. */
export function afterCommit(metadata: MetadataStore, act: () => Promise<void>): MetadataStore {
  return wrappedNoun(metadata, 'transaction', async (call) => {
    const result = await call()
    await act()
    return result
  })
}

/** The same object, where one method first does something else. */
export function beforeCall<T extends object>(target: T, method: string, act: () => Promise<void>): T {
  return wrappedNoun(target, method, async (call) => {
    await act()
    return call()
  })
}

type Around = (call: () => Promise<unknown>) => Promise<unknown>

function wrapped(metadata: MetadataStore, noun: Noun, method: string, around: Around): MetadataStore {
  return new Proxy(metadata, {
    get(target, key) {
      if (key === noun) return wrappedNoun(target[noun], method, around)
      if (key !== 'transaction') return bound(target, key)
      return (work: (tables: Tables) => Promise<unknown>) =>
        target.transaction((tables) => work({ ...tables, [noun]: wrappedNoun(tables[noun], method, around) }))
    },
  })
}

function wrappedNoun<T extends object>(table: T, method: string, around: Around): T {
  return new Proxy(table, {
    get(target, key) {
      const own = bound(target, key)
      if (key !== method || typeof own !== 'function') return own
      return (...values: unknown[]) => around(() => own(...values))
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
