import { andThen } from '../lib/and-then.ts'
import { readAllPages } from '../lib/paging.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Account, AccountContent } from '../ports/accounts.ts'
import type { Awaitable } from '../ports/awaitable.ts'
import type { BlobStore } from '../ports/blob-store.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import type { RegistrySettings } from './settings.ts'

type AccountNeeds = { readonly metadata: Pick<MetadataStore, 'accounts'> }
type OpenNeeds = AccountNeeds & { readonly settings: Pick<RegistrySettings, 'autoEnable'> }
type ReopenNeeds = { readonly metadata: Pick<MetadataStore, 'accounts' | 'transaction'> }
type EnableNeeds = ReopenNeeds & {
  readonly metadata: Pick<MetadataStore, 'probe'>
  readonly blobs: Pick<BlobStore, 'probe'>
}
type CountNeeds = { readonly metadata: Pick<MetadataStore, 'accounts' | 'usage'> }
type ReportNeeds = { readonly metadata: Pick<MetadataStore, 'accounts' | 'users' | 'usage'> }

/**
 * The account of a registry request. Refuses unless it is open: enabled and, for a change, not read-only. The row is
 * read for every request, so that every server obeys `disableAccount` at once.
 */
export function openAccount(
  { metadata, settings }: OpenNeeds,
  name: string,
  intent: 'read' | 'change',
): Awaitable<Account> {
  return andThen(metadata.accounts.find(name), (existing) => {
    // `ensure` returns the row of another request if that was faster, and it may be disabled.
    const account = existing ?? (settings.autoEnable ? metadata.accounts.ensure(name) : undefined)
    return andThen(account, (found) => requireOpen(found, intent))
  })
}

/**
 * Repeats the check of `openAccount` inside a transaction that changes content. The account stays open until the
 * transaction ends: `disableAccount` waits for it, so no manifest, tag or mount is added or removed afterwards. The
 * commit of an upload does not call this: an upload that already runs may still end as a blob, because no client can
 * read it before the account is enabled again.
 */
export async function checkStillOpen(tables: Pick<Tables, 'accounts'>, id: RowId): Promise<Account> {
  return requireOpen(await tables.accounts.findLocked(id), 'change')
}

function requireOpen(account: Account | undefined, intent: 'read' | 'change'): Account {
  if (account?.state !== 'enabled') throw new RegistryRefusal('account-disabled')
  if (intent === 'change' && account.isReadOnly) throw new RegistryRefusal('read-only')
  return account
}

/**
 * Idempotent. Rejects with `Unavailable` if a store cannot serve the account now. Refuses if the operator has suspended
 * the account.
 */
export async function enableAccount({ metadata, blobs }: EnableNeeds, name: string): Promise<void> {
  await metadata.probe()
  await blobs.probe()
  const isOpen = (await metadata.accounts.find(name))?.state === 'enabled'
  const { state } = await metadata.accounts.setState(name, 'enabled')
  if (!isOpen) await collectAgain({ metadata })
  if (state === 'suspended') throw new RegistryRefusal('account-suspended')
}

/**
 * Idempotent. Deletes nothing. Requests that begin after this returns are refused. A suspended account stays suspended,
 * and is disabled when the suspension ends.
 */
export async function disableAccount({ metadata }: AccountNeeds, name: string): Promise<void> {
  await metadata.accounts.setState(name, 'disabled')
}

/**
 * For operators. Idempotent. A suspended account is refused like a disabled one, and cannot enable itself. An account
 * that was never used gets, when the suspension ends, the state that its first use would have given it.
 */
export async function suspendAccount({ metadata, settings }: OpenNeeds, name: string): Promise<void> {
  if (settings.autoEnable) await metadata.accounts.ensure(name)
  await metadata.accounts.suspend(name)
}

/** For operators. Idempotent. Returns the state of the account afterwards; undefined if there is no such account. */
export async function resumeAccount({ metadata }: ReopenNeeds, name: string): Promise<Account['state'] | undefined> {
  const account = await metadata.accounts.resume(name)
  if (account?.state === 'enabled') await collectAgain({ metadata })
  return account?.state
}

/** The collector skipped the tag history of the account while it was not enabled, and reads each part of it only once. */
async function collectAgain({ metadata }: Pick<ReopenNeeds, 'metadata'>): Promise<void> {
  await metadata.transaction(({ marks }) => marks.remove('tag-history'))
}

export async function countImages({ metadata }: CountNeeds, name: string): Promise<number> {
  const account = await metadata.accounts.find(name)
  return account === undefined ? 0 : (await metadata.usage.findOfAccount(account.id)).images
}

/** What an operator sees of an account. `never enabled`: the account has users, but no row. */
export interface AccountSummary {
  readonly name: string
  readonly state: Account['state'] | 'never enabled'
  readonly imageCount: number
}

export interface AccountReport extends AccountSummary {
  readonly content: AccountContent
  /** The names of its users. Undefined if another service keeps the users. */
  readonly users: readonly string[] | undefined
}

const emptyContent: AccountContent = { repositories: 0, manifests: 0, tags: 0, blobs: 0, blobBytes: 0 }

/** All accounts by name: those that have a row and, with the embedded identity service, those that have users. */
export async function listAccounts({ metadata }: ReportNeeds, hasEmbeddedUsers: boolean): Promise<AccountSummary[]> {
  const rows = await readAllPages((after, limit) => metadata.accounts.list(after, limit))
  const summaries = new Map<string, AccountSummary>()
  for (const { id, name, state } of rows) {
    summaries.set(name, { name, state, imageCount: (await metadata.usage.findOfAccount(id)).images })
  }
  const users = hasEmbeddedUsers ? await listUsers({ metadata }, undefined) : []
  for (const { account: name } of users) {
    if (!summaries.has(name)) summaries.set(name, { name, state: 'never enabled', imageCount: 0 })
  }
  return [...summaries.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Undefined if the account has neither a row nor users in the embedded identity service. */
export async function findAccount(
  { metadata }: ReportNeeds,
  name: string,
  hasEmbeddedUsers: boolean,
): Promise<AccountReport | undefined> {
  const account = await metadata.accounts.find(name)
  const users = hasEmbeddedUsers ? await listUsers({ metadata }, name) : undefined
  if (account === undefined && !users?.length) return undefined
  return {
    name,
    state: account?.state ?? 'never enabled',
    imageCount: account === undefined ? 0 : (await metadata.usage.findOfAccount(account.id)).images,
    content: account === undefined ? emptyContent : await metadata.accounts.measure(account.id),
    users: users?.map((user) => user.name),
  }
}

function listUsers({ metadata }: Pick<ReportNeeds, 'metadata'>, account: string | undefined) {
  return readAllPages((after, limit) => metadata.users.list(account, after, limit))
}
