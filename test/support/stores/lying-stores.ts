// Stores that break a promise, for controls: a test that does not notice them proves nothing.
import type { MetadataStore, Tables } from '../../../src/ports/metadata-store.ts'

type Noun = keyof Tables

/** What one method does instead: it may ask the true one, with these values or others. */
type Lie = (
  ask: (...values: readonly unknown[]) => Promise<unknown>,
  values: readonly unknown[],
  tables: Tables,
) => unknown

/** A store that says of every account, within a transaction, that it is enabled. */
export function ignoringStates(metadata: MetadataStore): MetadataStore {
  return lying(metadata, 'accounts', 'findLocked', async (ask, values) => {
    const found = await ask(...values)
    return typeof found === 'object' ? { ...found, state: 'enabled' } : found
  })
}

/** A store that does not count images. */
export function forgettingImages(metadata: MetadataStore): MetadataStore {
  return lying(metadata, 'accounts', 'changeImageCount', async () => undefined)
}

/** A store in which one look-up goes on in another account when the right one has nothing. */
export function ignoringAccount(metadata: MetadataStore, noun: Noun, method: string, other: string): MetadataStore {
  return lying(metadata, noun, method, async (ask, values, tables) => {
    const found = await ask(...values)
    const accountId = (await tables.accounts.find(other))?.id
    if (accountId === undefined || (Array.isArray(found) ? found.length > 0 : found)) return found
    return ask(...values.map((value, at) => moved(value, at, accountId)))
  })
}

/** The account is the first argument, or a member of one. */
function moved(value: unknown, at: number, accountId: number): unknown {
  if (at === 0 && typeof value === 'number') return accountId
  return typeof value === 'object' && value !== null && 'accountId' in value ? { ...value, accountId } : value
}

function lying(metadata: MetadataStore, noun: Noun, method: string, lie: Lie): MetadataStore {
  return new Proxy(metadata, {
    get(target, key) {
      if (key === noun) return lyingNoun(target, noun, method, lie)
      const own: unknown = Reflect.get(target, key)
      if (key !== 'transaction') return typeof own === 'function' ? own.bind(target) : own
      return (work: (tables: Tables) => Promise<unknown>) =>
        target.transaction((tables) => work({ ...tables, [noun]: lyingNoun(tables, noun, method, lie) }))
    },
  })
}

function lyingNoun(tables: Tables, noun: Noun, method: string, lie: Lie): object {
  return new Proxy(tables[noun], {
    get(target, key) {
      const own: unknown = Reflect.get(target, key)
      if (typeof own !== 'function') return own
      if (key !== method) return own.bind(target)
      return (...values: readonly unknown[]) => lie((...others) => own.apply(target, others), values, tables)
    },
  })
}
