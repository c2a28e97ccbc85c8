// Answers that limit the rights of a caller: none gives more than the roles do.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { narrowGrants } from '../../../../src/adapters/identity-remote/me-response.ts'
import type { RepositoryName } from '../../../../src/oci/names.ts'
import { matchesPattern, parseRepositoryPattern } from '../../../../src/oci/repository-pattern.ts'
import type { Grant, Right } from '../../../../src/ports/identity.ts'
import { patterned } from '../../../support/stores/metadata-rows.ts'

const rights: readonly Right[] = ['pull', 'push', 'delete', 'operate']

function grantOf(given: readonly Right[], repositories?: readonly string[]): Grant {
  return { rights: new Set(given), ...(repositories && { repositories: repositories.map(patterned) }) }
}

/** What the roles give, what the answer says, and what is left. */
const cases: readonly (readonly [words: string, Grant, said: Readonly<Record<string, unknown>>, Grant])[] = [
  ['no limits', grantOf(rights), {}, grantOf(rights)],
  ['null for both', grantOf(rights), { rights: null, repositories: null }, grantOf(rights)],
  ['some rights', grantOf(['pull', 'push']), { rights: ['push', 'delete'] }, grantOf(['push'])],
  ['no right', grantOf(rights), { rights: [] }, grantOf([])],
  ['unknown rights', grantOf(rights), { rights: ['READ', 'Pull', ' pull'] }, grantOf([])],
  ['rights that are no texts', grantOf(rights), { rights: [1, null, ['pull'], { pull: true }] }, grantOf([])],
  ['some repositories', grantOf(rights), { repositories: ['team/*', 'base'] }, grantOf(rights, ['team/*', 'base'])],
  ['rights for a limited grant', grantOf(['pull'], ['team/*']), { rights: ['pull'] }, grantOf(['pull'], ['team/*'])],
  ['no repository', grantOf(rights), { repositories: [] }, grantOf(rights, [])],
  ['no valid pattern', grantOf(rights), { repositories: ['TEAM', 'a b', '', '../x', '**'] }, grantOf(rights, [])],
  ['patterns that are no texts', grantOf(rights), { repositories: [1, null, ['team/*']] }, grantOf(rights, [])],
  [
    'more than a hundred patterns',
    grantOf(rights),
    { repositories: Array.from({ length: 150 }, (_, index) => `team-${index}`) },
    grantOf(
      rights,
      Array.from({ length: 100 }, (_, index) => `team-${index}`),
    ),
  ],
  [
    'patterns within those of the grant, or around them',
    grantOf(['pull'], ['team/*', 'base']),
    { repositories: ['team/a/*', '*'] },
    grantOf(['pull'], ['team/*', 'base', 'team/a/*']),
  ],
  ['the same pattern', grantOf(['pull'], ['team/*']), { repositories: ['team/*'] }, grantOf(['pull'], ['team/*'])],
  ['a pattern that only overlaps', grantOf(['pull'], ['a*']), { repositories: ['*b'] }, grantOf(['pull'], [])],
  ['another pattern', grantOf(['pull'], ['a/*']), { repositories: ['b/*'] }, grantOf(['pull'], [])],
]

test.each(cases)('an answer with %s', (_, grant, said, left) => {
  const other = grantOf(['push'])
  const [narrowed, narrowedOther, ...more] = narrowGrants([grant, other], said)
  expect([narrowed, more]).toEqual([left, []])
  // Each grant is narrowed by itself.
  expect(narrowedOther).toEqual(narrowGrants([other], said)[0])
})

const name = fc.stringMatching(/^[ab](?:\/?[ab]){0,5}$/)
const patternText = fc
  .stringMatching(/^[ab*](?:\/?[ab*]){0,4}$/)
  .filter((text) => parseRepositoryPattern(text) !== undefined)
const patterns = fc.array(patternText, { maxLength: 3 })

function isAllowed(grants: readonly Grant[], right: Right, repository: string): boolean {
  return grants.some(
    (grant) =>
      grant.rights.has(right) &&
      (grant.repositories?.some((one) => matchesPattern(one, repository as RepositoryName)) ?? true),
  )
}

test('a caller limited in two ways may do only what both allow', () => {
  fc.assert(
    fc.property(patterns, patterns, fc.subarray([...rights]), name, (own, given, named, repository) => {
      const grants = [grantOf(['pull', 'push'], own)]
      const left = narrowGrants(grants, { repositories: given, rights: named })
      const limits = [grantOf(named, given)]
      for (const right of rights) {
        if (!isAllowed(left, right, repository)) continue
        expect([isAllowed(grants, right, repository), isAllowed(limits, right, repository)]).toEqual([true, true])
      }
    }),
    { numRuns: 3_000 },
  )
})
