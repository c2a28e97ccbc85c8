import { RegistryRefusal } from '../oci/errors.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'

// While a registry is moved to other stores, it goes on serving reads and takes no changes (the mark `read-only`).

type Needs = { readonly metadata: Pick<MetadataStore, 'marks'> }

export async function isReadOnly({ metadata }: Needs): Promise<boolean> {
  return (await metadata.marks.find('read-only')) !== undefined
}

/**
 * A change that locks no account's row. Looked at before, so that nothing is done in vain, and once more before anybody is
 * told that it is done: whoever copies the store may have passed by meanwhile.
 */
export async function changing<T>(needs: Needs, act: () => Promise<T>): Promise<T> {
  await checkTakesChanges(needs)
  const result = await act()
  await checkTakesChanges(needs)
  return result
}

async function checkTakesChanges(needs: Needs): Promise<void> {
  if (await isReadOnly(needs)) throw new RegistryRefusal('read-only')
}

/** Inside a transaction: what it changes is there before the store takes no changes, or not at all. */
export async function checkStillTakesChanges(tables: Pick<Tables, 'accounts'>, accountId: RowId): Promise<void> {
  if ((await tables.accounts.findLocked(accountId))?.isReadOnly) throw new RegistryRefusal('read-only')
}
