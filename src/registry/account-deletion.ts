import type { DyingAccount } from '../ports/account-deletions.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import { staysWritable } from './read-only.ts'

type Needs = { readonly metadata: Pick<MetadataStore, 'accounts' | 'accountDeletions' | 'transaction'> }

export type DeletionStart = 'requested' | 'unknown' | 'enabled'

/**
 * Begins the deletion of an account that is disabled or suspended, or has users only. From then on it is suspended until it is
 * gone. Repeating it changes nothing.
 */
export async function requestAccountDeletion(
  { metadata }: Needs,
  name: string,
  { hasUsers }: { readonly hasUsers: boolean },
): Promise<DeletionStart> {
  const account = await metadata.accounts.find(name)
  if (account === undefined && !hasUsers) return 'unknown'
  if (account?.state === 'enabled') return 'enabled'
  await metadata.accounts.suspend(name)
  const suspended = await metadata.accounts.find(name)
  // False: another command has ended the suspension meanwhile.
  const isMarked = suspended !== undefined && (await metadata.accountDeletions.request(suspended.id))
  return isMarked ? 'requested' : 'enabled'
}

export interface DeletionProgress {
  /** How many rows were removed. */
  readonly rows: number
  /** How many accounts are gone, with their names. */
  readonly accounts: number
}

/**
 * Continues the deletion of all accounts that are being deleted, in small transactions. Several processes may do so at once.
 * The name of an account stays blocked for `blockedMs`, because credentials of its callers may be valid for so long.
 */
export async function continueAccountDeletions(
  needs: Needs,
  blockedMs: number,
  shouldStop: () => boolean = () => false,
): Promise<DeletionProgress> {
  let [rows, accounts] = [0, 0]
  let after = 0
  while (!shouldStop()) {
    const account = await needs.metadata.accountDeletions.findNext(after)
    if (account === undefined) break
    after = account.id
    const ended = await deleteOne(needs, account, blockedMs, shouldStop)
    rows += ended.rows
    if (ended.isGone) accounts += 1
  }
  return { rows, accounts }
}

async function deleteOne(
  { metadata }: Needs,
  account: DyingAccount,
  blockedMs: number,
  shouldStop: () => boolean,
): Promise<{ readonly rows: number; readonly isGone: boolean }> {
  let rows = 0
  while (!shouldStop()) {
    const step = await metadata.transaction(async (tables) => {
      if (!(await staysWritable(tables))) return { removed: 0, isGone: false }
      const removed = await tables.accountDeletions.removeSome(account)
      const isGone = removed === 0 && (await tables.accountDeletions.finish(account, blockedMs))
      return { removed, isGone }
    })
    rows += step.removed
    if (step.removed === 0) return { rows, isGone: step.isGone }
  }
  return { rows, isGone: false }
}
