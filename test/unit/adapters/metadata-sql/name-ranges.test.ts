// What is read of a catalog for the patterns of a caller.
import { expect, test } from 'bun:test'
import { planNames } from '../../../../src/adapters/metadata-sql/tables/name-ranges.ts'
import { patterned } from '../../../support/stores/metadata-rows.ts'

/** In a word each: `from..before` of a stretch, or the names. */
function plan(within: readonly string[], after = ''): string[] {
  return planNames(within.map(patterned), after).map((step) =>
    'names' in step ? step.names.join(' ') : `${step.from}..${step.before}`,
  )
}

test('each folder is a stretch of its own, in the order of the names', () => {
  expect(plan(['team-199/*', 'team-001/*'])).toEqual(['team-001/..team-001/~', 'team-199/..team-199/~'])
})

test('a folder within another, or named twice, is read once', () => {
  expect(plan(['team/*', 'team/a/*', 'team/*/z', 'team/a/b', 'team/*'])).toEqual(['team/..team/~'])
  expect(plan(['*/public', 'team/*', 'zoo'])).toEqual(['!..~'])
})

test('what chooses within a stretch are the patterns that begin as it does', () => {
  const [first, second] = planNames(['a/*', 'a/b/*', 'a/c', 'b/*'].map(patterned), '')

  expect(first).toMatchObject({ patterns: ['a/*', 'a/b/*', 'a/c'] })
  expect(second).toMatchObject({ patterns: ['b/*'] })
})

test('names without a star are looked up together, where they stand between the folders', () => {
  expect(plan(['z', 'm/*', 'b', 'a', 'n', 'm', 'b', 'm/one'])).toEqual(['a b m', 'm/..m/~', 'n z'])
})

test('what is not behind the last name is not read again', () => {
  const within = ['a', 'b/*', 'c', 'd/*', 'e']

  expect(plan(within, 'a')).toEqual(['b/..b/~', 'c', 'd/..d/~', 'e'])
  expect(plan(within, 'b/x')).toEqual(['b/x!..b/~', 'c', 'd/..d/~', 'e'])
  expect(plan(within, 'c')).toEqual(['d/..d/~', 'e'])
  expect(plan(within, 'd/zz')).toEqual(['d/zz!..d/~', 'e'])
  expect(plan(within, 'e')).toEqual([])
  expect(plan([], 'e')).toEqual([])
})

test('a text that is no name is a place between names', () => {
  expect(plan(['b/*'], 'b/~')).toEqual([])
  expect(plan(['b/*'], 'b')).toEqual(['b/..b/~'])
  expect(plan(['b/*', 'c'], 'B')).toEqual(['b/..b/~', 'c'])
})
