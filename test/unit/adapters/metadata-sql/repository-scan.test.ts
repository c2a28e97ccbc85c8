// Which names and ranges the catalog reads for a caller whose rights are limited to patterns.
import { expect, test } from 'bun:test'
import { planScan } from '../../../../src/adapters/metadata-sql/tables/repository-scan.ts'
import { patterned } from '../../../support/stores/metadata-rows.ts'

/** One text for each step: `from..before` for a range, or the names. */
function plan(within: readonly string[], after = ''): string[] {
  return planScan(within.map(patterned), after).map((step) =>
    'names' in step ? step.names.join(' ') : `${step.from}..${step.before}`,
  )
}

test('each prefix is a range of its own, in the order of the names', () => {
  expect(plan(['team-199/*', 'team-001/*'])).toEqual(['team-001/..team-001/~', 'team-199/..team-199/~'])
})

test('a prefix within another one, or given twice, is read once', () => {
  expect(plan(['team/*', 'team/a/*', 'team/*/z', 'team/a/b', 'team/*'])).toEqual(['team/..team/~'])
  expect(plan(['*/public', 'team/*', 'zoo'])).toEqual(['!..~'])
})

test('a range has the patterns that begin with its prefix', () => {
  const [first, second] = planScan(['a/*', 'a/b/*', 'a/c', 'b/*'].map(patterned), '')

  expect(first).toMatchObject({ patterns: ['a/*', 'a/b/*', 'a/c'] })
  expect(second).toMatchObject({ patterns: ['b/*'] })
})

test('patterns without a star are looked up together, in their place between the ranges', () => {
  expect(plan(['z', 'm/*', 'b', 'a', 'n', 'm', 'b', 'm/one'])).toEqual(['a b m', 'm/..m/~', 'n z'])
})

test('names up to `after` are not read again', () => {
  const within = ['a', 'b/*', 'c', 'd/*', 'e']

  expect(plan(within, 'a')).toEqual(['b/..b/~', 'c', 'd/..d/~', 'e'])
  expect(plan(within, 'b/x')).toEqual(['b/x!..b/~', 'c', 'd/..d/~', 'e'])
  expect(plan(within, 'c')).toEqual(['d/..d/~', 'e'])
  expect(plan(within, 'd/zz')).toEqual(['d/zz!..d/~', 'e'])
  expect(plan(within, 'e')).toEqual([])
  expect(plan([], 'e')).toEqual([])
})

test('`after` need not be a valid name', () => {
  expect(plan(['b/*'], 'b/~')).toEqual([])
  expect(plan(['b/*'], 'b')).toEqual(['b/..b/~'])
  expect(plan(['b/*', 'c'], 'B')).toEqual(['b/..b/~', 'c'])
})
