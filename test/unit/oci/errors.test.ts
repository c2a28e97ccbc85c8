import { describe, expect, test } from 'bun:test'
import { RegistryRefusal, refusalWords, Unavailable } from '../../../src/oci/errors.ts'

describe('the words of a refusal', () => {
  test.each(Object.entries(refusalWords))(
    'of %p begin small, end without a dot and blame nobody',
    (_refusal, words) => {
      expect(words).toMatch(/^[a-z][^\n]*[^.!\s]$/)
      expect(words.toLowerCase()).not.toMatch(/\byou\b|illegal|wrong request|fatal/)
      expect(words.length).toBeLessThan(80)
    },
  )

  test('are its message, and its details are kept in their order', () => {
    const refusal = new RegistryRefusal('manifest-blob-unknown', { digest: 'a' }, { digest: 'b' })
    expect(refusal.message).toBe(refusalWords['manifest-blob-unknown'])
    expect(refusal.details).toEqual([{ digest: 'a' }, { digest: 'b' }])
  })
})

test('trouble names what is away, and keeps the cause out of its message', () => {
  const cause = new Error('password=secret')
  const trouble = new Unavailable('the blob store', { cause })
  expect(trouble.message).toBe('the blob store is unavailable')
  expect(trouble.cause).toBe(cause)
})
