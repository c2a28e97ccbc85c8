import { RegistryRefusal } from '../oci/errors.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { Account } from '../ports/accounts.ts'
import type { Actor } from '../ports/actor.ts'
import type { GarbageAges } from '../ports/garbage.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import type { TagState } from '../ports/tags.ts'
import { findImmutability } from './immutable-tags.ts'
import { isReadOnly, staysWritable } from './read-only.ts'
import { listNamesAfter, listTags, planRepository } from './retention.ts'
import type { RetentionPlan } from './retention-plan.ts'
import { parseRetentionPolicy, type RetentionPolicy } from './retention-rules.ts'
import { removeUntaggedOf } from './untagged.ts'

type RunNeeds = {
  readonly metadata: Pick<MetadataStore, 'repositories' | 'tags' | 'policies' | 'untagged' | 'now' | 'transaction'>
  readonly settings: Pick<GarbageAges, 'tagHistoryMs' | 'undeleteMs'>
}
type ScheduleNeeds = RunNeeds & {
  readonly metadata: Pick<MetadataStore, 'garbage' | 'marks'>
}

/** How many tags one transaction removes. */
const removalsAtOnce = 50

export interface RetentionRun {
  readonly removedTags: number
  readonly removedManifests: number
  /** The last repository that is done, if there may be more to do. */
  readonly next: RepositoryName | undefined
}

export interface RunLimits {
  /** The run continues behind this repository. */
  readonly after?: RepositoryName | undefined
  /** The run ends after the repository with which it has removed so much, or looked at so many. */
  readonly removalsMax?: number
  readonly repositoriesMax?: number
  readonly shouldStop?: () => boolean
  /** Called after each repository. */
  readonly onProgress?: (done: RepositoryName) => Promise<void>
}

/**
 * Applies the retention policy of the account, repository by repository. Each portion of removals is a transaction, which checks
 * that the account is enabled, that the policy is still the same, and that no tag was pushed since it was planned. So several
 * servers may run this at once, and a run can end anywhere: the next one plans again.
 */
export async function runRetention(
  needs: RunNeeds,
  accountId: RowId,
  actor: Actor,
  { after, removalsMax = Infinity, repositoriesMax = Infinity, shouldStop = () => false, onProgress }: RunLimits = {},
): Promise<RetentionRun> {
  const { metadata } = needs
  const stored = await metadata.policies.find(accountId, 'retention')
  const result = { removedTags: 0, removedManifests: 0 }
  if (stored === undefined) return { ...result, next: undefined }
  const run = new PolicyRun(needs, accountId, stored.body, actor, await metadata.now(), shouldStop)
  let done = after
  let count = 0
  for await (const repository of listNamesAfter(metadata, accountId, after)) {
    const isEnough = count >= repositoriesMax || result.removedTags + result.removedManifests >= removalsMax
    if (isEnough || shouldStop()) return { ...result, next: done }
    const removed = await run.apply(repository)
    result.removedTags += removed.tags
    result.removedManifests += removed.manifests
    // The repository may not be done. The next run plans it again.
    if (run.isOver || shouldStop()) return { ...result, next: done }
    count += 1
    done = repository
    await onProgress?.(repository)
  }
  return { ...result, next: undefined }
}

class PolicyRun {
  readonly #needs: RunNeeds
  readonly #accountId: RowId
  readonly #body: string
  readonly #policy: RetentionPolicy
  readonly #actor: Actor
  readonly #now: number
  readonly #shouldStop: () => boolean
  /** The policy has changed, or the account takes no changes. */
  isOver = false

  constructor(needs: RunNeeds, accountId: RowId, body: string, actor: Actor, now: number, shouldStop: () => boolean) {
    this.#needs = needs
    this.#accountId = accountId
    this.#body = body
    this.#policy = parseRetentionPolicy(JSON.parse(body))
    this.#actor = actor
    this.#now = now
    this.#shouldStop = shouldStop
  }

  async apply(repository: RepositoryName): Promise<{ readonly tags: number; readonly manifests: number }> {
    const { metadata, settings } = this.#needs
    const isImmutable = await findImmutability(metadata, { id: this.#accountId, hasImmutableTags: true })
    const key = { accountId: this.#accountId, repository }
    const planned = await planRepository(metadata, key, this.#policy, this.#now, isImmutable)
    if (planned === undefined) return { tags: 0, manifests: 0 }
    const tags = planned.plan.coversNothing ? 0 : await this.#removeTags(planned.row, planned.plan)
    const { untaggedAfterMs } = this.#policy
    if (untaggedAfterMs === undefined || untaggedAfterMs === 'never') return { tags, manifests: 0 }
    const ages = { ...settings, untaggedMs: untaggedAfterMs }
    const manifests = await removeUntaggedOf({ metadata }, planned.row, ages, this.#now, this.#shouldStop)
    return { tags, manifests }
  }

  async #removeTags(row: RepositoryRow, plan: RetentionPlan): Promise<number> {
    let removed = 0
    let portion: TagState[] = []
    const flush = async () => {
      const states = portion
      portion = []
      if (states.length === 0 || this.isOver || this.#shouldStop()) return
      removed += await this.#needs.metadata.transaction((tables) => this.#removePortion(tables, row, plan, states))
    }
    for await (const state of listTags(this.#needs.metadata, row, undefined)) {
      if (this.isOver || this.#shouldStop()) return removed
      if (plan.decide(state).isKept) continue
      portion.push(state)
      if (portion.length >= removalsAtOnce) await flush()
    }
    await flush()
    return removed
  }

  async #removePortion(
    tables: Tables,
    row: RepositoryRow,
    plan: RetentionPlan,
    states: readonly TagState[],
  ): Promise<number> {
    const account = await tables.accounts.findLocked(this.#accountId)
    if (!(await this.#isStillValid(tables, account))) {
      this.isOver = true
      return 0
    }
    const isImmutable = account && (await findImmutability(tables, account))
    let removed = 0
    for (const state of states) {
      if (!plan.mayRemove(state, isImmutable)) continue
      if (await tables.tags.removeUnchanged(row, state, { actor: this.#actor, cause: 'policy' })) removed += 1
    }
    return removed
  }

  async #isStillValid({ policies }: Tables, account: Account | undefined): Promise<boolean> {
    if (account?.state !== 'enabled' || account.isReadOnly) return false
    return (await policies.find(account.id, 'retention'))?.body === this.#body
  }
}

const policyActor: Actor = { subject: 'retention policy' }

/** How long after the last repository of a scheduled run no other server continues it. */
const claimMs = 600_000

export interface ScheduledRun {
  readonly accounts: number
  readonly removedTags: number
  readonly removedManifests: number
  /** Accounts whose policy this version of Berth cannot read. */
  readonly skipped: readonly RowId[]
}

/**
 * Applies the policies of all accounts once in each `everyMs`, however many servers call this. Undefined if no run is due. The
 * claims are those of `sweepOrphansOnce`. If a server ends early, the next one continues where it was: the mark `retention` names
 * the last repository that was done.
 */
export async function runDueRetention(
  needs: ScheduleNeeds,
  everyMs: number,
  shouldStop: () => boolean = () => false,
): Promise<ScheduledRun | undefined> {
  const { garbage, marks, policies } = needs.metadata
  const shortMs = Math.min(claimMs, everyMs)
  if (await isReadOnly(needs)) return undefined
  if (!(await garbage.claimWork('whole retention', 0))) return undefined
  if (!(await garbage.claimWork('retention', shortMs))) return undefined
  const total = { accounts: 0, removedTags: 0, removedManifests: 0, skipped: [] as RowId[] }
  let position = parseMark(await marks.find('retention'))
  for (;;) {
    const [accountId] = await policies.listAccounts('retention', position && position.accountId - 1, 1)
    if (accountId === undefined) break
    const after = accountId === position?.accountId ? position.repository : undefined
    const onProgress = async (repository: RepositoryName) => {
      await garbage.claimWork('retention', shortMs)
      await setMark(needs, `${accountId} ${repository}`)
    }
    const run = await runIfEnabled(needs, accountId, { after, shouldStop, onProgress })
    if (shouldStop()) return total
    total.accounts += 1
    if (run === 'unreadable') total.skipped.push(accountId)
    total.removedTags += run === 'unreadable' ? 0 : run.removedTags
    total.removedManifests += run === 'unreadable' ? 0 : run.removedManifests
    position = { accountId: accountId + 1, repository: undefined }
    await setMark(needs, `${position.accountId} `)
  }
  await setMark(needs, undefined)
  await garbage.claimWork('whole retention', everyMs)
  return total
}

async function runIfEnabled(
  needs: ScheduleNeeds,
  accountId: RowId,
  limits: RunLimits,
): Promise<RetentionRun | 'unreadable'> {
  const account = await needs.metadata.transaction((tables) => tables.accounts.findLocked(accountId))
  if (account?.state !== 'enabled') return { removedTags: 0, removedManifests: 0, next: undefined }
  try {
    return await runRetention(needs, accountId, policyActor, limits)
  } catch (error) {
    if (error instanceof RegistryRefusal && error.refusal === 'body-invalid') return 'unreadable'
    throw error
  }
}

function parseMark(text: string | undefined) {
  const [, accountId, repository] = /^(\d{1,15}) (.*)$/.exec(text ?? '') ?? []
  if (accountId === undefined) return undefined
  return { accountId: Number(accountId), repository: repository ? (repository as RepositoryName) : undefined }
}

async function setMark({ metadata }: ScheduleNeeds, text: string | undefined): Promise<void> {
  await metadata.transaction(async (tables) => {
    if (!(await staysWritable(tables))) return
    if (text === undefined) await tables.marks.remove('retention')
    else await tables.marks.set('retention', text)
  })
}
