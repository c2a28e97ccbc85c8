import { RegistryRefusal } from '../oci/errors.ts'
import type { RepositoryName, Tag } from '../oci/names.ts'
import { matchesPattern, type RepositoryPattern } from '../oci/repository-pattern.ts'
import { compileTagPattern, type TagPattern, type TagTest } from '../oci/tag-pattern.ts'
import type { Account } from '../ports/accounts.ts'
import type { Tables } from '../ports/metadata-store.ts'
import type { RepositoryKey, RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import type { TagChange } from '../ports/tags.ts'

/** A tag is immutable if it matches a pattern of both lists, and no exception. */
export interface ImmutableTagRule {
  readonly repositories: readonly RepositoryPattern[]
  readonly exceptRepositories: readonly RepositoryPattern[]
  readonly tags: readonly TagPattern[]
  readonly exceptTags: readonly TagPattern[]
}

export interface ImmutableTagPolicy {
  readonly rules: readonly ImmutableTagRule[]
}

/** What a transaction that changes tags knows, after it has locked the account. */
export interface TagScope {
  readonly account: Account
  readonly repositoryKey: RepositoryKey
  readonly repository: RepositoryRow
}

/** Whether the rules make a tag immutable. */
export type ImmutabilityTest = (repository: RepositoryName, tag: Tag) => boolean

/**
 * Inside a transaction that has locked the account. Creates or moves the tag. Refuses if the tag exists, has another
 * manifest and is immutable.
 */
export async function pointTag(
  tables: Pick<Tables, 'tags' | 'policies'>,
  scope: TagScope,
  tag: Tag,
  manifestId: RowId,
  change: TagChange,
): Promise<void> {
  const previous = await tables.tags.point(scope.repository, tag, manifestId, change)
  if (!scope.account.hasImmutableTags || previous === undefined || previous === manifestId) return
  await checkMutable(tables, scope, [tag])
}

/**
 * Inside a transaction that has locked the account, after it has moved or removed the tags. Refuses if one of them is
 * immutable. The rows of the tags are locked, so of two pushes of the same new tag the second is refused.
 */
export async function checkMutable(
  tables: Pick<Tables, 'policies'>,
  { account, repositoryKey: { repository } }: Pick<TagScope, 'account' | 'repositoryKey'>,
  tags: readonly Tag[],
): Promise<void> {
  const isImmutable = await findImmutability(tables, account)
  const tag = isImmutable && tags.find((one) => isImmutable(repository, one))
  if (tag !== undefined) throw new RegistryRefusal('tag-immutable', { tag })
}

/** The rules of the account; undefined if it has none. A transaction that has locked the account gets the valid ones. */
export async function findImmutability(
  { policies }: Pick<Tables, 'policies'>,
  { id, hasImmutableTags }: Pick<Account, 'id' | 'hasImmutableTags'>,
): Promise<ImmutabilityTest | undefined> {
  const policy = hasImmutableTags ? await policies.find(id, 'immutable-tags') : undefined
  return policy && toTest(policy.body)
}

/** The newest tests, by the text of their rules. */
const tests = new Map<string, ImmutabilityTest>()
const testsMax = 32

function toTest(body: string): ImmutabilityTest {
  const known = tests.get(body)
  if (known !== undefined) return known
  if (tests.size >= testsMax) tests.clear()
  const { rules }: ImmutableTagPolicy = JSON.parse(body)
  const test = compileRules(rules)
  tests.set(body, test)
  return test
}

export function compileRules(rules: readonly ImmutableTagRule[]): ImmutabilityTest {
  const compiled = rules.map((rule) => ({ rule, isTag: toTagTest(rule.tags), isException: toTagTest(rule.exceptTags) }))
  return (repository, tag) =>
    compiled.some(
      ({ rule, isTag, isException }) => coversRepository(rule, repository) && isTag(tag) && !isException(tag),
    )
}

/** Whether one of the patterns matches. */
export function toTagTest(patterns: readonly TagPattern[]): TagTest {
  const compiled = patterns.map(compileTagPattern)
  return (tag) => compiled.some((matches) => matches(tag))
}

export function coversRepository(
  rule: Pick<ImmutableTagRule, 'repositories' | 'exceptRepositories'>,
  repository: RepositoryName,
): boolean {
  const isIn = (patterns: readonly RepositoryPattern[]) => patterns.some((one) => matchesPattern(one, repository))
  return isIn(rule.repositories) && !isIn(rule.exceptRepositories)
}
