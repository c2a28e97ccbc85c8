import { expect, test } from 'bun:test'
import { rootCauseOf } from '../../../src/lib/root-cause.ts'

test('the innermost cause is what an error comes from, however many have wrapped it', () => {
  const cause = new Error('the password is wrong')
  const wrapped = new Error('the store is unavailable', { cause: new Error('the connection ended', { cause }) })

  expect(rootCauseOf(wrapped)).toBe(cause)
})

test('an error without a cause, or with one that is no error, comes from nothing', () => {
  expect(rootCauseOf(new Error('alone'))).toBeUndefined()
  expect(rootCauseOf(new Error('beside', { cause: 'a text' }))).toBeUndefined()
})
