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

/**
 * Idempotent. Fails with `Unavailable` when the stores could not serve the account, and refuses when the operator has
 * suspended it.
 */
export async function enableAccount({ metadata, blobs }: EnableNeeds, name: string): Promise<void> {
  await metadata.probe()
  await blobs.probe()
  const { state } = await metadata.accounts.setState(name, 'enabled')
  if (state === 'suspended') throw new RegistryRefusal('account-suspended')
}

/**
 * Idempotent. Deletes nothing; requests that begin after this has answered are refused. A suspended account stays
 * suspended, and is disabled when the suspension is lifted.
 */
export async function disableAccount({ metadata }: AccountNeeds, name: string): Promise<void> {
  await metadata.accounts.setState(name, 'disabled')
}

/**
 * For operators. The account is refused as a disabled one is, but cannot enable itself. Idempotent. An account that was never
 * used returns to what it would have been on its first use.
 */
export async function suspendAccount({ metadata, settings }: GateNeeds, name: string): Promise<void> {
  if (settings.autoEnable) await metadata.accounts.ensure(name)
  await metadata.accounts.suspend(name)
}

/** For operators. Returns the state that the account has now, or undefined if there is no such account. Idempotent. */
export async function resumeAccount({ metadata }: AccountNeeds, name: string): Promise<Account['state'] | undefined> {
  return (await metadata.accounts.resume(name))?.state
}

export async function countImages({ metadata }: AccountNeeds, name: string): Promise<number> {
  return (await metadata.accounts.find(name))?.imageCount ?? 0
}
