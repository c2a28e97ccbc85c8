import type { RepositoryName } from '../oci/names.ts'
import type { Account } from '../ports/accounts.ts'
import type { Actor } from '../ports/actor.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryKey, RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import type { TagState } from '../ports/tags.ts'
import { findImmutability, type ImmutabilityTest } from './immutable-tags.ts'
import { removePolicy, setPolicy } from './policies.ts'
import { type RetentionDecision, RetentionPlan } from './retention-plan.ts'
import type { RetentionPolicy } from './retention-rules.ts'

type ReadNeeds = {
  readonly metadata: Pick<MetadataStore, 'repositories' | 'tags' | 'policies' | 'now'>
}
type ChangeNeeds = { readonly metadata: Pick<MetadataStore, 'transaction' | 'policies'> }

/** How many tags one statement reads. */
const tagsAtOnce = 500

/** How many repositories one statement reads, and how many one page of decisions looks at. */
const repositoriesAtOnce = 100
const repositoriesPerPage = 1_000

/** Sets the policy, as `parseRetentionPolicy` has accepted its JSON. */
export async function setRetention(
  needs: ChangeNeeds,
  accountId: RowId,
  { json, policy }: { readonly json: object; readonly policy: RetentionPolicy },
  actor: Actor,
): Promise<void> {
  const { untaggedAfterMs } = policy
  const marks = { untaggedMs: untaggedAfterMs === 'never' ? 0 : untaggedAfterMs }
  await setPolicy(needs, accountId, 'retention', { policy: json, marks }, actor)
}

/** Idempotent. */
export async function removeRetention(needs: ChangeNeeds, accountId: RowId): Promise<void> {
  await removePolicy(needs, accountId, 'retention', { untaggedMs: undefined })
}

export interface TagDecision extends RetentionDecision {
  readonly repository: RepositoryName
  readonly state: TagState
}

/** The place of a tag in the list of decisions. */
export interface DecisionPosition {
  readonly repository: RepositoryName
  /** Undefined: before the first tag of the repository. */
  readonly tag: string | undefined
}

export interface DecisionPage {
  readonly decisions: readonly TagDecision[]
  /** Where the next page begins. Undefined: there are no more tags. */
  readonly next: DecisionPosition | undefined
}

/** What the policy would do with each tag now, in the order of the names. With `only`: of one repository. */
export async function listDecisions(
  { metadata }: ReadNeeds,
  account: Account,
  policy: RetentionPolicy,
  {
    after,
    limit,
    only,
  }: {
    readonly after: DecisionPosition | undefined
    readonly limit: number
    readonly only?: RepositoryName | undefined
  },
): Promise<DecisionPage> {
  const isImmutable = await findImmutability(metadata, account)
  const now = await metadata.now()
  const decisions: TagDecision[] = []
  let seen = 0
  for await (const repository of only === undefined ? listNamesFrom(metadata, account.id, after?.repository) : [only]) {
    const from = repository === after?.repository ? after.tag : undefined
    if (decisions.length >= limit || seen >= repositoriesPerPage) {
      return { decisions, next: { repository, tag: from } }
    }
    seen += 1
    const planned = await planRepository(metadata, { accountId: account.id, repository }, policy, now, isImmutable)
    if (planned === undefined) continue
    const { row, plan } = planned
    let last = from
    for await (const state of listTags(metadata, row, from)) {
      if (decisions.length >= limit) return { decisions, next: { repository, tag: last } }
      decisions.push({ repository, state, ...plan.decide(state) })
      last = state.tag
    }
  }
  return { decisions, next: undefined }
}

/** The repository with this name, even if it does not exist, and those behind it. */
async function* listNamesFrom(
  tables: Pick<Tables, 'repositories'>,
  accountId: RowId,
  from: RepositoryName | undefined,
): AsyncGenerator<RepositoryName> {
  if (from !== undefined) yield from
  yield* listNamesAfter(tables, accountId, from)
}

export async function* listNamesAfter(
  { repositories }: Pick<Tables, 'repositories'>,
  accountId: RowId,
  after: RepositoryName | undefined,
): AsyncGenerator<RepositoryName> {
  for (let last = after; ; ) {
    const names = await repositories.list(accountId, last, repositoriesAtOnce)
    yield* names
    last = names.at(-1)
    if (names.length < repositoriesAtOnce) return
  }
}

/** The tags behind `from`. */
export async function* listTags(
  { tags }: Pick<Tables, 'tags'>,
  repository: RepositoryRow,
  from: string | undefined,
): AsyncGenerator<TagState> {
  for (let last = from; ; ) {
    const states = await tags.listStates(repository, last, tagsAtOnce)
    yield* states
    last = states.at(-1)?.tag
    if (states.length < tagsAtOnce) return
  }
}

/** Undefined if the repository does not exist. Reads its tags once, or twice until a tag is kept. */
export async function planRepository(
  metadata: Pick<Tables, 'repositories' | 'tags'>,
  repositoryKey: RepositoryKey,
  policy: RetentionPolicy,
  now: number,
  isImmutable: ImmutabilityTest | undefined,
): Promise<{ readonly row: RepositoryRow; readonly plan: RetentionPlan } | undefined> {
  const row = await metadata.repositories.find(repositoryKey)
  if (row === undefined) return undefined
  const plan = new RetentionPlan(policy, repositoryKey.repository, now, isImmutable)
  if (plan.coversNothing) return { row, plan }
  for await (const state of listTags(metadata, row, undefined)) plan.observe(state)
  for await (const state of listTags(metadata, row, undefined)) if (plan.observeKept(state)) break
  return { row, plan }
}
