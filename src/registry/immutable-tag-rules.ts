import type { Actor } from '../ports/actor.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import type { ImmutableTagPolicy } from './immutable-tags.ts'
import { removePolicy, setPolicy } from './policies.ts'
import { PolicyField, rulesMax } from './policy-fields.ts'

type ChangeNeeds = { readonly metadata: Pick<MetadataStore, 'transaction' | 'policies'> }

/** Refuses with the path of the faulty field. */
export function parseImmutableTagPolicy(body: unknown): ImmutableTagPolicy {
  const { rules } = new PolicyField(body).members(['rules'])
  return {
    rules: rules.list(rulesMax, (rule) => {
      const names = ['repositories', 'exceptRepositories', 'tags', 'exceptTags'] as const
      const { repositories, exceptRepositories, tags, exceptTags } = rule.members(names)
      return {
        repositories: repositories.repositories(),
        exceptRepositories: exceptRepositories.exceptRepositories(),
        tags: tags.tags(),
        exceptTags: exceptTags.exceptTags(),
      }
    }),
  }
}

/** Existing tags become immutable too. */
export async function setImmutableTags(
  needs: ChangeNeeds,
  accountId: RowId,
  policy: ImmutableTagPolicy,
  actor: Actor,
): Promise<void> {
  const marks = { hasImmutableTags: policy.rules.length > 0 }
  await setPolicy(needs, accountId, 'immutable-tags', { policy, marks }, actor)
}

/** Idempotent. */
export async function removeImmutableTags(needs: ChangeNeeds, accountId: RowId): Promise<void> {
  await removePolicy(needs, accountId, 'immutable-tags', { hasImmutableTags: false })
}
