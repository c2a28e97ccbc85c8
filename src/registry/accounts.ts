import { readWholeList } from '../lib/whole-list.ts'
import type { Account, AccountContent } from '../ports/accounts.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'

type Needs = { readonly metadata: Pick<MetadataStore, 'accounts' | 'users'> }

/** What an operator sees of an account. One that was never enabled has no row, and is there if somebody belongs to it. */
export interface AccountSummary {
  readonly name: string
  readonly state: Account['state'] | 'never enabled'
  readonly imageCount: number
}

export interface AccountReport extends AccountSummary {
  readonly content: AccountContent
  /** By name; undefined where another service keeps them. */
  readonly users: readonly string[] | undefined
}

const nothing: AccountContent = { repositories: 0, manifests: 0, tags: 0, blobs: 0, blobBytes: 0 }

/** All accounts by name: those with a row and, where users are ours, those that users belong to. */
export async function listAccounts({ metadata }: Needs, hasOwnUsers: boolean): Promise<AccountSummary[]> {
  const rows = await readWholeList((after, limit) => metadata.accounts.list(after, limit))
  const found = new Map(rows.map(({ name, state, imageCount }) => [name, { name, state, imageCount }] as const))
  const users = hasOwnUsers ? await readWholeList((after, limit) => metadata.users.list(undefined, after, limit)) : []
  const others = new Set(users.map(({ account }) => account).filter((name) => !found.has(name)))
  const neverEnabled = [...others].map((name) => ({ name, state: 'never enabled' as const, imageCount: 0 }))
  return [...found.values(), ...neverEnabled].sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** Undefined when there is neither a row nor, where users are ours, a user of that account. */
export async function findAccount(
  { metadata }: Needs,
  name: string,
  hasOwnUsers: boolean,
): Promise<AccountReport | undefined> {
  const account = await metadata.accounts.find(name)
  const users = hasOwnUsers ? await readWholeList((after, limit) => metadata.users.list(name, after, limit)) : undefined
  if (account === undefined && !users?.length) return undefined
  return {
    name,
    state: account?.state ?? 'never enabled',
    imageCount: account?.imageCount ?? 0,
    content: account === undefined ? nothing : await metadata.accounts.measure(account.id),
    users: users?.map((user) => user.name),
  }
}
