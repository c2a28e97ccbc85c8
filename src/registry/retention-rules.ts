import { parseSemanticVersion } from '../oci/semantic-version.ts'
import type { TagPattern } from '../oci/tag-pattern.ts'
import type { ImmutableTagRule } from './immutable-tags.ts'
import { allTags, PolicyField } from './policy-fields.ts'

/** What a tag must meet to be kept: all members that are given. */
export interface KeepCondition {
  readonly tags: readonly TagPattern[] | undefined
  readonly pushedWithinMs: number | undefined
  readonly pulledWithinMs: number | undefined
  /** Among so many tags that were pushed last. Counts the tags that meet the members above. */
  readonly newestPushed: number | undefined
  /** Among so many tags whose image was pulled last. Counts as above; a tag that was never pulled does not meet it. */
  readonly newestPulled: number | undefined
  /** Among so many newest releases of one minor version. Counts as above; a pre-release does not meet it. */
  readonly newestPatches: number | undefined
}

/** Decides about the tags that it covers and no earlier rule does: a tag is kept if it meets one of the conditions. */
export interface RetentionRule extends ImmutableTagRule {
  /** For reasons. Default: its place. */
  readonly name: string
  readonly keep: readonly KeepCondition[]
  /** Whether the rule may remove tags if no tag of the repository would be left. */
  readonly mayRemoveAllTags: boolean
  readonly removesImmutable: boolean
}

export interface RetentionPolicy {
  readonly rules: readonly RetentionRule[]
  /** How long untagged manifests are kept. `never`: they are not removed. Undefined: the setting of the registry. */
  readonly untaggedAfterMs: number | 'never' | undefined
}

export const retentionRulesMax = 20
export const conditionsMax = 5
export const countMax = 1_000
export const ruleNameLengthMax = 64

/** Refuses with the path of the faulty field. */
export function parseRetentionPolicy(body: unknown): RetentionPolicy {
  const { rules, untaggedAfter } = new PolicyField(body).members(['rules', 'untaggedAfter'])
  return {
    rules: rules.isGiven ? rules.list(retentionRulesMax, parseRule).map(withName) : [],
    untaggedAfterMs: untaggedAfter.isGiven ? parseUntaggedAge(untaggedAfter) : undefined,
  }
}

function parseUntaggedAge(field: PolicyField): number | 'never' {
  if (field.value === 'never') return 'never'
  const ms = field.ageMs()
  return ms > 0 ? ms : field.refuse('must be longer than 0; or `never`')
}

const ruleMembers = [
  'name',
  'repositories',
  'exceptRepositories',
  'tags',
  'exceptTags',
  'keep',
  'mayRemoveAllTags',
  'removesImmutable',
] as const

function parseRule(field: PolicyField): RetentionRule {
  const rule = field.members(ruleMembers)
  const keep = rule.keep.list(conditionsMax, parseCondition)
  const tags = rule.tags.tags()
  const mayRemoveAllTags = rule.mayRemoveAllTags.isGiven && rule.mayRemoveAllTags.flag()
  if (keep.length === 0 && tags.includes(allTags) && !mayRemoveAllTags) {
    rule.keep.refuse('keeps nothing, so the rule would remove all tags; to confirm this, set mayRemoveAllTags to true')
  }
  return {
    name: rule.name.isGiven ? parseName(rule.name) : '',
    repositories: rule.repositories.repositories(),
    exceptRepositories: rule.exceptRepositories.exceptRepositories(),
    tags,
    exceptTags: rule.exceptTags.exceptTags(),
    keep,
    mayRemoveAllTags,
    removesImmutable: rule.removesImmutable.isGiven && rule.removesImmutable.flag(),
  }
}

function withName(rule: RetentionRule, at: number): RetentionRule {
  return rule.name === '' ? { ...rule, name: `rule ${at + 1}` } : rule
}

function parseName(field: PolicyField): string {
  const text = field.text()
  const isName =
    text.length > 0 && text.length <= ruleNameLengthMax && !/[\p{Cc}\p{Cf}]/u.test(text) && text.isWellFormed()
  return isName ? text : field.refuse(`must be a text of 1 to ${ruleNameLengthMax} characters on one line`)
}

const conditionMembers = [
  'tags',
  'pushedWithin',
  'pulledWithin',
  'newestPushed',
  'newestPulled',
  'newestPatches',
] as const

function parseCondition(field: PolicyField): KeepCondition {
  const members = field.members(conditionMembers)
  const { tags, pushedWithin, pulledWithin, newestPushed, newestPulled, newestPatches } = members
  if (!Object.values(members).some(({ isGiven }) => isGiven)) field.refuse(`must have ${conditionMembers.join(' or ')}`)
  return {
    tags: tags.isGiven ? tags.tags() : undefined,
    pushedWithinMs: pushedWithin.isGiven ? pushedWithin.ageMs() : undefined,
    pulledWithinMs: pulledWithin.isGiven ? pulledWithin.ageMs() : undefined,
    newestPushed: newestPushed.isGiven ? newestPushed.count(countMax) : undefined,
    newestPulled: newestPulled.isGiven ? newestPulled.count(countMax) : undefined,
    newestPatches: newestPatches.isGiven ? newestPatches.count(countMax) : undefined,
  }
}

/** `1.2` for the release 1.2.3. Undefined if the tag is no release. */
export function findMinor(tag: string): { readonly minor: string; readonly patch: number } | undefined {
  const version = parseSemanticVersion(tag)
  if (version === undefined || version.preRelease !== undefined) return undefined
  return { minor: `${version.major}.${version.minor}`, patch: version.patch }
}
