import { Type } from 'typebox'
import { nameLengthMax } from '../../oci/names.ts'
import { tagPatternLengthMax } from '../../oci/tag-pattern.ts'
import { patternsMax, rulesMax } from '../../registry/policy-fields.ts'
import { conditionsMax, countMax, retentionRulesMax, ruleNameLengthMax } from '../../registry/retention-rules.ts'
import { dateTime, digest } from './formats.ts'

// The policies of an account. `registry/policy-fields.ts` parses them, and names the path of a faulty field.

const repositoryPattern = Type.String({
  minLength: 1,
  maxLength: nameLengthMax,
  description: 'The name of a repository. Up to four `*` stand for any text, also with slashes.',
})
const tagPattern = Type.String({
  minLength: 1,
  maxLength: tagPatternLengthMax,
  description:
    'A tag with wildcards: `*` for any text, `?` for one character, `[0-9a]` for one of these characters, `{a,b*}` for one of these patterns. `{semver}`, alone, matches semantic versions.',
})
const some = <Entry extends typeof repositoryPattern>(entry: Entry, description: string) =>
  Type.Optional(Type.Array(entry, { minItems: 1, maxItems: patternsMax, description }))
const exceptions = <Entry extends typeof repositoryPattern>(entry: Entry) =>
  Type.Optional(Type.Array(entry, { maxItems: patternsMax, description: 'Exceptions. Default: none.' }))

/** The members of a rule that say which tags it covers. */
const covered = {
  repositories: some(repositoryPattern, 'Default: all repositories.'),
  exceptRepositories: exceptions(repositoryPattern),
  tags: some(tagPattern, 'Default: all tags.'),
  exceptTags: exceptions(tagPattern),
}

/** When and by whom a policy was changed last. */
const changed = {
  changedAt: Type.Union([dateTime, Type.Null()], { description: 'Null: the account has no such policy.' }),
  changedBy: Type.Union([Type.String(), Type.Null()]),
}

const closed = { additionalProperties: false }

const ImmutableTagRule = Type.Object(covered, {
  ...closed,
  description: 'A tag is immutable if it matches a pattern of both lists, and no exception.',
})
const rules = Type.Array(Type.Ref('#/components/schemas/ImmutableTagRule'), { maxItems: rulesMax })

const ImmutableTagPolicy = Type.Object({ rules }, { ...closed, description: 'Without rules, all tags can change.' })
const ImmutableTagPolicyResponse = Type.Object({ rules, ...changed })

const duration = (description: string) =>
  Type.Optional(Type.String({ description: `${description}, such as \`30d\`.` }))
const count = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: countMax, description: `Among so many ${description}.` }))

const KeepCondition = Type.Object(
  {
    tags: some(tagPattern, 'Matches one of the patterns.'),
    pushedWithin: duration('Pushed within this time'),
    pulledWithin: duration('Its image was pulled within this time, by any tag or by digest'),
    newestPushed: count('tags that were pushed last'),
    newestPulled: count('tags whose images were pulled last; a tag that was never pulled does not count'),
    newestPatches: count('newest releases of one minor version; a pre-release does not count'),
  },
  {
    ...closed,
    minProperties: 1,
    description:
      'A tag meets it if it meets all members. The last three count only the tags of the rule that meet the first three.',
  },
)

const RetentionRule = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: ruleNameLengthMax, description: 'For the reasons.' })),
    ...covered,
    keep: Type.Array(Type.Ref('#/components/schemas/KeepCondition'), {
      maxItems: conditionsMax,
      description: 'A tag is kept if it meets one of the conditions. Empty: no tag is kept.',
    }),
    mayRemoveAllTags: Type.Optional(
      Type.Boolean({
        description: 'Whether the rule may remove tags if no tag of the repository would be left. Default: false.',
      }),
    ),
    removesImmutable: Type.Optional(
      Type.Boolean({ description: 'Whether the rule removes immutable tags too. Default: false.' }),
    ),
  },
  { ...closed, description: 'Decides about the tags that it covers and no earlier rule covers.' },
)

const retention = {
  rules: Type.Optional(
    Type.Array(Type.Ref('#/components/schemas/RetentionRule'), {
      maxItems: retentionRulesMax,
      description: 'The first rule that covers a tag decides. A tag that no rule covers is kept.',
    }),
  ),
  untaggedAfter: duration(
    'How long untagged manifests are kept, instead of `garbage.untagged`: `never`, or a duration',
  ),
}

const RetentionPolicy = Type.Object(retention, closed)
const RetentionPolicyResponse = Type.Object({ ...retention, ...changed })

const RetentionDecision = Type.Object({
  repository: Type.String(),
  tag: Type.String(),
  digest,
  pushedAt: dateTime,
  pulledAt: Type.Union([dateTime, Type.Null()], { description: 'Null: its image was never pulled.' }),
  action: Type.Enum(['keep', 'remove']),
  rule: Type.Union([Type.String(), Type.Null()], {
    description: 'The name of the rule that decides. Null: none does.',
  }),
  reason: Type.String(),
})
const RetentionPlanResponse = Type.Object({
  decisions: Type.Array(Type.Ref('#/components/schemas/RetentionDecision')),
})

const RetentionRunResponse = Type.Object({
  removedTags: Type.Integer({ minimum: 0 }),
  removedManifests: Type.Integer({ minimum: 0, description: 'Untagged manifests.' }),
  last: Type.Union([Type.String(), Type.Null()], {
    description: 'Repeat the request with this `last` to continue. Null: everything is done.',
  }),
})

export const policySchemas = {
  ImmutableTagRule,
  ImmutableTagPolicy,
  ImmutableTagPolicyResponse,
  KeepCondition,
  RetentionRule,
  RetentionPolicy,
  RetentionPolicyResponse,
  RetentionDecision,
  RetentionPlanResponse,
  RetentionRunResponse,
} as const
