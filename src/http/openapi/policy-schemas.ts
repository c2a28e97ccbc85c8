import { Type } from 'typebox'
import { nameLengthMax } from '../../oci/names.ts'
import { tagPatternLengthMax } from '../../oci/tag-pattern.ts'
import { patternsMax, rulesMax } from '../../registry/policy-fields.ts'
import { dateTime } from './formats.ts'

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

export const policySchemas = { ImmutableTagRule, ImmutableTagPolicy, ImmutableTagPolicyResponse } as const
