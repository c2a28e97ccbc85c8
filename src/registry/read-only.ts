import { RegistryRefusal } from '../oci/errors.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'

// While a registry is moved to other stores, and after that, the source accepts no changes: the mark `read-only` exists.

type Needs = { readonly metadata: Pick<MetadataStore, 'marks'> }

export async function isReadOnly({ metadata }: Needs): Promise<boolean> {
  return (await metadata.marks.find('read-only')) !== undefined
}

/**
 * Makes a change that locks no account. The first check avoids useless work. The second check decides: the move may
 * have read the rows before the change, so a change is acknowledged only if the mark does not exist after it.
 */
export async function changeUnlessReadOnly<T>(needs: Needs, change: () => Promise<T>): Promise<T> {
  await requireWritable(needs)
  const result = await change()
  await requireWritable(needs)
  return result
}

async function requireWritable(needs: Needs): Promise<void> {
  if (await isReadOnly(needs)) throw new RegistryRefusal('read-only')
}

/** For use inside a transaction. If this returns true, the mark cannot be put before the transaction ends. */
export async function staysWritable({ marks }: Pick<Tables, 'marks'>): Promise<boolean> {
  return (await marks.findLocked('read-only')) === undefined
}
