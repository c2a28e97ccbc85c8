import { writeDuration } from '../lib/quantities.ts'
import type { RepositoryName, Tag } from '../oci/names.ts'
import type { TagTest } from '../oci/tag-pattern.ts'
import type { TagState } from '../ports/tags.ts'
import { coversRepository, type ImmutabilityTest, toTagTest } from './immutable-tags.ts'
import { findMinor, type KeepCondition, type RetentionPolicy, type RetentionRule } from './retention-rules.ts'

/** What happens to a tag, and why. */
export interface RetentionDecision {
  readonly isKept: boolean
  /** The rule that decides. Undefined: no rule covers the tag, or it belongs to another image. */
  readonly rule: string | undefined
  readonly reason: string
}

/**
 * The plan for one repository. First it sees all tags (`observe`), which tells how new a tag must be to be kept. Then it decides
 * about each tag (`decide`). A tag that is pushed in between is newer than the tags that were counted, so it is kept.
 *
 * Its memory does not depend on the number of tags: each condition keeps as many places as it counts, and a limited number
 * of minor versions.
 */
export class RetentionPlan {
  readonly #repository: RepositoryName
  readonly #rules: readonly PlannedRule[]
  readonly #isImmutable: ImmutabilityTest
  #keepsSomething = false

  constructor(
    policy: RetentionPolicy,
    repository: RepositoryName,
    now: number,
    isImmutable: ImmutabilityTest = () => false,
  ) {
    this.#repository = repository
    const rules = policy.rules.filter((rule) => coversRepository(rule, repository))
    this.#rules = rules.map((rule) => new PlannedRule(rule, now))
    this.#isImmutable = isImmutable
  }

  get coversNothing(): boolean {
    return this.#rules.length === 0
  }

  observe(state: TagState): void {
    if (!isCompanion(state)) this.#find(state.tag)?.observe(state)
  }

  /** After all tags were observed, for each tag until this returns true: one tag is kept, so rules may remove others. */
  observeKept(state: TagState): boolean {
    this.#keepsSomething ||= !isCompanion(state) && this.#decideAlone(state).isKept
    return this.#keepsSomething
  }

  /** After `observeKept` was called for each tag, or returned true. */
  decide(state: TagState): RetentionDecision {
    const decision = this.#decideAlone(state)
    const rule = this.#find(state.tag)
    if (decision.isKept || this.#keepsSomething || rule?.rule.mayRemoveAllTags !== false) return decision
    const reason = 'otherwise no tag of the repository would be left (mayRemoveAllTags)'
    return { isKept: true, rule: decision.rule, reason }
  }

  /** Whether the tag may still be removed, if other rules for immutable tags hold meanwhile. */
  mayRemove({ tag }: TagState, isImmutable: ImmutabilityTest | undefined): boolean {
    return this.#find(tag)?.rule.removesImmutable === true || isImmutable?.(this.#repository, tag) !== true
  }

  #decideAlone(state: TagState): RetentionDecision {
    const rule = this.#find(state.tag)
    if (rule === undefined) return { isKept: true, rule: undefined, reason: 'no rule covers the tag' }
    if (state.hasSubject) return { isKept: true, rule: undefined, reason: 'belongs to an image that exists' }
    const { name, removesImmutable } = rule.rule
    const kept = isCompanion(state) ? undefined : rule.findReason(state)
    if (kept !== undefined) return { isKept: true, rule: name, reason: kept }
    if (!removesImmutable && this.#isImmutable(this.#repository, state.tag)) {
      return { isKept: true, rule: name, reason: 'the tag is immutable' }
    }
    const reason = isCompanion(state) ? 'the image to which it belongs is deleted' : 'meets no condition of the rule'
    return { isKept: false, rule: name, reason }
  }

  /** The first rule that covers the tag. */
  #find(tag: Tag): PlannedRule | undefined {
    return this.#rules.find((rule) => rule.covers(tag))
  }
}

/** Whether the tag only carries a signature or the like of another image, so that it follows that image. */
function isCompanion({ hasSubject }: TagState): boolean {
  return hasSubject !== undefined
}

class PlannedRule {
  readonly rule: RetentionRule
  readonly #conditions: readonly PlannedCondition[]
  readonly #isTag: TagTest
  readonly #isException: TagTest

  constructor(rule: RetentionRule, now: number) {
    this.rule = rule
    this.#conditions = rule.keep.map((condition) => new PlannedCondition(condition, now))
    this.#isTag = toTagTest(rule.tags)
    this.#isException = toTagTest(rule.exceptTags)
  }

  covers(tag: Tag): boolean {
    return this.#isTag(tag) && !this.#isException(tag)
  }

  observe(state: TagState): void {
    for (const condition of this.#conditions) condition.observe(state)
  }

  /** Why the tag is kept. */
  findReason(state: TagState): string | undefined {
    return this.#conditions.find((condition) => condition.isMet(state))?.reason
  }
}

class PlannedCondition {
  readonly reason: string
  readonly #condition: KeepCondition
  readonly #now: number
  readonly #isTag: TagTest
  readonly #pushed: NewestPlaces | undefined
  readonly #pulled: NewestPlaces | undefined
  readonly #patches: NewestPatches | undefined

  constructor(condition: KeepCondition, now: number) {
    this.reason = describeCondition(condition)
    this.#condition = condition
    this.#now = now
    this.#isTag = condition.tags === undefined ? () => true : toTagTest(condition.tags)
    const { newestPushed, newestPulled, newestPatches } = condition
    this.#pushed = newestPushed === undefined ? undefined : new NewestPlaces(newestPushed)
    this.#pulled = newestPulled === undefined ? undefined : new NewestPlaces(newestPulled)
    this.#patches = newestPatches === undefined ? undefined : new NewestPatches(newestPatches)
  }

  observe(state: TagState): void {
    if (!this.#passes(state)) return
    this.#pushed?.add(state.pushedAt, state.tag)
    if (state.pulledAt !== undefined) this.#pulled?.add(state.pulledAt, state.tag)
    this.#patches?.add(state.tag)
  }

  isMet(state: TagState): boolean {
    if (!this.#passes(state)) return false
    const { tag, pushedAt, pulledAt } = state
    if (this.#pushed?.has(pushedAt, tag) === false) return false
    if (this.#pulled !== undefined && (pulledAt === undefined || !this.#pulled.has(pulledAt, tag))) return false
    return this.#patches?.has(tag) !== false
  }

  /** Whether the tag meets the members that do not count. */
  #passes({ tag, pushedAt, pulledAt }: TagState): boolean {
    const { pushedWithinMs, pulledWithinMs } = this.#condition
    if (pushedWithinMs !== undefined && pushedAt < this.#now - pushedWithinMs) return false
    if (pulledWithinMs !== undefined && (pulledAt === undefined || pulledAt < this.#now - pulledWithinMs)) return false
    return this.#isTag(tag)
  }
}

interface Place {
  readonly time: number
  readonly tag: string
}

/** Newer first. Of two tags of one time, the later name counts as newer, so that the order is the same at each run. */
function compare(one: Place, other: Place): number {
  if (one.time !== other.time) return other.time - one.time
  return one.tag < other.tag ? 1 : one.tag > other.tag ? -1 : 0
}

/** The newest `count` tags. */
class NewestPlaces {
  readonly #count: number
  #places: Place[] = []
  #isCut = true

  constructor(count: number) {
    this.#count = count
  }

  add(time: number, tag: string): void {
    this.#places.push({ time, tag })
    this.#isCut = false
    if (this.#places.length >= 2 * this.#count + 100) this.#cut()
  }

  /** Also true for a tag that was not added and is as new. */
  has(time: number, tag: string): boolean {
    if (!this.#isCut) this.#cut()
    const oldest = this.#places.length < this.#count ? undefined : this.#places.at(-1)
    return oldest === undefined || compare({ time, tag }, oldest) <= 0
  }

  /** The last place is the oldest one afterwards. */
  #cut(): void {
    this.#places = this.#places.sort(compare).slice(0, this.#count)
    this.#isCut = true
  }
}

/** How many minor versions a condition counts. Releases of further ones are kept. */
const minorsMax = 2_000

/** The newest `count` patches of each minor version. `v1.2.3` and `1.2.3` are one patch. */
class NewestPatches {
  readonly #count: number
  readonly #patches = new Map<string, number[]>()

  constructor(count: number) {
    this.#count = count
  }

  add(tag: string): void {
    const version = findMinor(tag)
    if (version === undefined) return
    const { minor, patch } = version
    const patches = this.#patches.get(minor) ?? []
    if (patches.includes(patch) || (patches.length === 0 && this.#patches.size >= minorsMax)) return
    patches.push(patch)
    this.#patches.set(minor, patches.sort((one, other) => other - one).slice(0, this.#count))
  }

  has(tag: string): boolean {
    const version = findMinor(tag)
    if (version === undefined) return false
    const patches = this.#patches.get(version.minor) ?? []
    return patches.length < this.#count || version.patch >= (patches.at(-1) ?? 0)
  }
}

function describeCondition(condition: KeepCondition): string {
  const { tags, pushedWithinMs, pulledWithinMs, newestPushed, newestPulled, newestPatches } = condition
  const parts = [
    newestPushed && `among the ${newestPushed} pushed last`,
    newestPulled && `among the ${newestPulled} pulled last`,
    newestPatches && `among the newest patches of its minor version (${newestPatches})`,
    pushedWithinMs !== undefined && `pushed within ${writeDuration(pushedWithinMs)}`,
    pulledWithinMs !== undefined && `pulled within ${writeDuration(pulledWithinMs)}`,
    tags && `matches ${tags.join(' or ')}`,
  ]
  return parts.filter((part) => typeof part === 'string').join(' and ')
}
