// Retention plans against a model that looks at all tags at once, and the reasons that people read.
import { expect, test } from 'bun:test'
import type { TagState } from '../../../src/ports/tags.ts'
import { RetentionPlan } from '../../../src/registry/retention-plan.ts'
import { parseRetentionPolicy } from '../../../src/registry/retention-rules.ts'
import { seed } from '../../support/basics/fuzzing.ts'
import { catchRefusal } from '../../support/basics/outcomes.ts'
import { named } from '../../support/stores/metadata-rows.ts'
import { drawFrom, drawPolicy, drawTags, findKept } from '../../support/stores/retention-model.ts'

const now = 1_900_000_000_000
const planOf = (policy: object, tags: readonly TagState[]) => {
  const plan = new RetentionPlan(parseRetentionPolicy(policy), named('app'), now, (_, tag) => tag.startsWith('v1'))
  for (const state of tags) plan.observe(state)
  tags.some((state) => plan.observeKept(state))
  return plan
}

test('a plan keeps what a model keeps, in 2,000 random registries', () => {
  const totals = { kept: 0, removed: 0, emptied: 0 }
  for (let round = 0; round < 2_000; round += 1) {
    const draw = drawFrom(Math.abs(seed + round))
    const [tags, { json, policy }] = [drawTags(draw, now), drawPolicy(draw)]
    const plan = planOf(json, tags)
    const kept = tags.filter((state) => plan.decide(state).isKept).map(({ tag }) => tag as string)

    const expected = findKept(tags, policy, now, (tag) => tag.startsWith('v1'))
    if (kept.join() !== expected.join())
      expect({ round, json, tags, kept }).toEqual({ round, json, tags, kept: expected as never })
    totals.kept += kept.length
    totals.removed += tags.length - kept.length
    if (kept.length === 0 && tags.length > 0) totals.emptied += 1
  }
  expect([totals.kept > 2_000, totals.removed > 2_000, totals.emptied > 10]).toEqual([true, true, true])
})

test('a tag that is pushed while a plan is made is kept as one of the newest', () => {
  const [old] = drawTags(drawFrom(3), now)
  if (old === undefined) return expect.unreachable()
  const plan = planOf({ rules: [{ tags: ['x*'], keep: [{ newestPushed: 1 }] }] }, [
    { ...old, tag: 'x1' as never },
    { ...old, tag: 'y' as never },
  ])
  const decide = (tag: string, pushedAt: number) => plan.decide({ ...old, tag: tag as never, pushedAt }).isKept

  expect([decide('x1', old.pushedAt), decide('x0', old.pushedAt), decide('x0', old.pushedAt + 1)]).toEqual([
    true,
    false,
    true,
  ])
})

test('a faulty policy is refused with the path of its field', () => {
  const rule = (more: object) => ({ rules: [{ keep: [{ newestPushed: 1 }] }, { keep: [], tags: ['v*'], ...more }] })
  const cases: readonly (readonly [unknown, string])[] = [
    [rule({ keep: [{ newestPushed: 0 }] }), 'rules[1].keep[0].newestPushed: must be a whole number from 1 to 1000'],
    [rule({ keep: [{}] }), 'rules[1].keep[0]: must have tags or pushedWithin'],
    [rule({ keep: [{ pushedWithin: '30' }] }), 'rules[1].keep[0].pushedWithin: must be a duration'],
    [rule({ keep: [{ newest: 1 }] }), 'rules[1].keep[0].newest: is not a member here'],
    [rule({ tags: ['*'] }), 'rules[1].keep: keeps nothing, so the rule would remove all tags'],
    [rule({ keep: undefined }), 'rules[1].keep: must be an array'],
    [rule({ name: 'a\nb' }), 'rules[1].name: must be a text of 1 to 64 characters'],
    [rule({ removesImmutable: 'yes' }), 'rules[1].removesImmutable: must be true or false'],
    [{ untaggedAfter: '0s' }, 'untaggedAfter: must be longer than 0'],
    [{ rules: Array.from({ length: 21 }, () => ({ keep: [] })) }, 'rules'],
  ]
  for (const [policy, message] of cases) {
    const { field, reason } = catchRefusal(() => parseRetentionPolicy(policy))?.details[0] ?? {}
    expect(`${field}: ${reason}`.slice(0, message.length)).toBe(message)
  }
  expect(parseRetentionPolicy(rule({ tags: ['*'], mayRemoveAllTags: true })).rules).toHaveLength(2)
})
