import type { Actor } from '../ports/actor.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { PolicyKind, PolicyMarks, StoredPolicy } from '../ports/policies.ts'
import type { RowId } from '../ports/row-id.ts'
import { checkStillOpen } from './accounts.ts'

type ReadNeeds = { readonly metadata: Pick<MetadataStore, 'policies'> }
type ChangeNeeds = { readonly metadata: Pick<MetadataStore, 'transaction' | 'policies'> }

/** The policy of the account; undefined if it has none of this kind. */
export async function findPolicy(
  { metadata }: ReadNeeds,
  accountId: RowId,
  kind: PolicyKind,
): Promise<StoredPolicy | undefined> {
  return metadata.policies.find(accountId, kind)
}

/** Adds or replaces the policy. It holds on every server when this returns. */
export async function setPolicy(
  { metadata }: ChangeNeeds,
  accountId: RowId,
  kind: PolicyKind,
  { policy, marks }: { readonly policy: object; readonly marks: Partial<PolicyMarks> },
  actor: Actor,
): Promise<void> {
  await metadata.transaction(async (tables) => {
    await changeMarks(tables, accountId, marks)
    await tables.policies.set(accountId, kind, JSON.stringify(policy), actor.subject)
  })
}

/** Idempotent. */
export async function removePolicy(
  { metadata }: ChangeNeeds,
  accountId: RowId,
  kind: PolicyKind,
  marks: Partial<PolicyMarks>,
): Promise<void> {
  await metadata.transaction(async (tables) => {
    await changeMarks(tables, accountId, marks)
    await tables.policies.remove(accountId, kind)
  })
}

/** Locks the account first: the lock of `checkStillOpen` alone would let others hold it too, and cause deadlocks. */
async function changeMarks(tables: Tables, accountId: RowId, marks: Partial<PolicyMarks>): Promise<void> {
  await tables.policies.lock(accountId)
  const { hasImmutableTags, untaggedMs } = await checkStillOpen(tables, accountId)
  await tables.policies.setMarks(accountId, { hasImmutableTags, untaggedMs, ...marks })
}
