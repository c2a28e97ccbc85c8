import { RegistryRefusal } from '../oci/errors.ts'
import type { Account } from '../ports/accounts.ts'
import type { BlobStore } from '../ports/blob-store.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import type { RegistrySettings } from './settings.ts'

type AccountNeeds = { readonly metadata: Pick<MetadataStore, 'accounts'> }
type GateNeeds = AccountNeeds & { readonly settings: Pick<RegistrySettings, 'autoEnable'> }
type EnableNeeds = {
  readonly metadata: Pick<MetadataStore, 'accounts' | 'probe'>
  readonly blobs: Pick<BlobStore, 'probe'>
}

/**
 * The account behind a registry request, which must be enabled. Asked anew for every request: what `disableAccount` has
 * answered holds at once, on every replica.
 */
export async function openAccount(
  { metadata, settings }: GateNeeds,
  name: string,
  intent: 'read' | 'change',
): Promise<Account> {
  const known = await metadata.accounts.find(name)
  const account = known ?? (settings.autoEnable ? await metadata.accounts.ensure(name) : undefined)
  // One that came into being meanwhile may have been disabled as it did.
  if (account?.state !== 'enabled') throw new RegistryRefusal('account-disabled')
  if (intent === 'change' && account.isReadOnly) throw new RegistryRefusal('read-only')
  return account
}

/**
 * The same once more inside a transaction: no manifest, tag or mount appears, and nothing goes, once `disableAccount` has
 * answered. A blob that was on its way may arrive; nobody can ask for it before the account is enabled again. Nor does
 * anything once the store takes no changes: blobs neither (`checkStillTakesChanges`).
 */
export async function checkStillEnabled(tables: Pick<Tables, 'accounts'>, id: RowId): Promise<void> {
  const account = await tables.accounts.findLocked(id)
  if (account?.state !== 'enabled') throw new RegistryRefusal('account-disabled')
  if (account.isReadOnly) throw new RegistryRefusal('read-only')
}

/** Idempotent. Refuses with trouble when the stores could not serve the account that it would switch on. */
export async function enableAccount({ metadata, blobs }: EnableNeeds, name: string): Promise<void> {
  await metadata.probe()
  await blobs.probe()
  await metadata.accounts.setState(name, 'enabled')
}

/** Idempotent. Deletes nothing; requests that begin after this has answered are refused. */
export async function disableAccount({ metadata }: AccountNeeds, name: string): Promise<void> {
  await metadata.accounts.setState(name, 'disabled')
}

export async function countImages({ metadata }: AccountNeeds, name: string): Promise<number> {
  return (await metadata.accounts.find(name))?.imageCount ?? 0
}
