// Answers that limit the rights of a caller: none gives more than the roles do.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { narrowGrants } from '../../../../src/adapters/identity-remote/me-response.ts'
import type { RepositoryName } from '../../../../src/oci/names.ts'
import {
  matchesPattern,
  parseRepositoryPattern,
  type RepositoryPattern,
} from '../../../../src/oci/repository-pattern.ts'
import type { Grant, Right } from '../../../../src/ports/identity.ts'

const rights: readonly Right[] = ['pull', 'push', 'delete', 'operate']
const all: readonly Grant[] = [{ rights: new Set(rights) }]

function pattern(text: string): RepositoryPattern {
  const parsed = parseRepositoryPattern(text)
  if (parsed === undefined) throw new Error(`${text} is no pattern`)
  return parsed
}

function isAllowed(grants: readonly Grant[], right: Right, name: string): boolean {
  return grants.some(
    (grant) =>
      grant.rights.has(right) &&
      (grant.repositories?.some((one) => matchesPattern(one, name as RepositoryName)) ?? true),
  )
}

describe('an answer without limits', () => {
  test.each([
    ['none at all', {}],
    ['null for both', { rights: null, repositories: null }],
  ])('leaves all: %s', (_, said) => {
    expect(narrowGrants(all, said)).toBe(all)
  })
})

describe('rights', () => {
  test('are those that the roles give and the answer names', () => {
    const grants: readonly Grant[] = [{ rights: new Set(['pull', 'push']) }]

    expect(narrowGrants(grants, { rights: ['push', 'delete'] })).toEqual([{ rights: new Set(['push']) }])
  })

  test.each([
    ['none', []],
    ['others', ['READ', 'Pull', ' pull']],
    ['no texts', [1, null, ['pull'], { pull: true }]],
  ])('are none where the answer names %s', (_, given) => {
    expect(narrowGrants(all, { rights: given })).toEqual([{ rights: new Set() }])
  })
})

describe('repositories', () => {
  test('are those that match the patterns of the answer', () => {
    expect(narrowGrants(all, { repositories: ['team/*', 'base'] })).toEqual([
      { rights: new Set(rights), repositories: [pattern('team/*'), pattern('base')] },
    ])
  })

  test('of a grant that is limited itself stay so where the answer names none', () => {
    const grants: readonly Grant[] = [{ rights: new Set(['pull']), repositories: [pattern('team/*')] }]

    expect(narrowGrants(grants, { rights: ['pull'] })).toEqual(grants)
  })

  test('are limited for each grant', () => {
    const grants: readonly Grant[] = [{ rights: new Set(['pull']) }, { rights: new Set(['push']) }]

    expect(narrowGrants(grants, { repositories: ['a'] }).map(({ repositories }) => repositories)).toEqual([
      [pattern('a')],
      [pattern('a')],
    ])
  })

  test.each([
    ['nothing', []],
    ['what no name can match', ['TEAM', 'a b', '', '../x', '**']],
    ['no texts', [1, null, ['team/*']]],
  ])('are none where the answer names %s', (_, given) => {
    expect(narrowGrants(all, { repositories: given })).toEqual([{ rights: new Set(rights), repositories: [] }])
  })

  test('beyond the hundredth pattern are none', () => {
    const many = Array.from({ length: 150 }, (_, index) => `team-${index}`)
    const grants = narrowGrants(all, { repositories: many })

    expect(['team-0', 'team-99', 'team-100', 'team-149'].map((name) => isAllowed(grants, 'pull', name))).toEqual([
      true,
      true,
      false,
      false,
    ])
  })

  test.each([
    [
      'the smaller of two, whichever side it is on',
      ['team/*', 'base'],
      ['team/a/*', '*'],
      ['team/*', 'base', 'team/a/*'],
    ],
    ['the same', ['team/*'], ['team/*'], ['team/*']],
    ['nothing where they only overlap', ['a*'], ['*b'], []],
    ['nothing where they have nothing in common', ['a/*'], ['b/*'], []],
  ])('of a grant that is limited itself are %s', (_, own, given, left) => {
    const grants: readonly Grant[] = [{ rights: new Set(['pull']), repositories: own.map(pattern) }]

    expect(narrowGrants(grants, { repositories: given })[0]?.repositories?.toSorted()).toEqual(
      left.map(pattern).toSorted(),
    )
  })
})

const name = fc.stringMatching(/^[ab](?:\/?[ab]){0,5}$/)
const patternText = fc
  .stringMatching(/^[ab*](?:\/?[ab*]){0,4}$/)
  .filter((text) => parseRepositoryPattern(text) !== undefined)
const patterns = fc.array(patternText, { maxLength: 3 })

test('a caller limited in two ways may do only what both allow', () => {
  fc.assert(
    fc.property(patterns, patterns, fc.subarray([...rights]), name, (own, given, named, repository) => {
      const grants: readonly Grant[] = [{ rights: new Set<Right>(['pull', 'push']), repositories: own.map(pattern) }]
      const left = narrowGrants(grants, { repositories: given, rights: named })
      const limits: readonly Grant[] = [{ rights: new Set(named), repositories: given.map(pattern) }]
      for (const right of rights) {
        if (!isAllowed(left, right, repository)) continue
        expect([isAllowed(grants, right, repository), isAllowed(limits, right, repository)]).toEqual([true, true])
      }
    }),
    { numRuns: 3_000 },
  )
})
