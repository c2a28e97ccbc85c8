import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { hashHex, startHash } from '../../../src/lib/hashing.ts'

const algorithms = ['sha256', 'sha512'] as const

describe.each(algorithms)('%s', (algorithm) => {
  const expected = (text: string) => createHash(algorithm).update(text).digest('hex')

  test('of nothing, of text and of bytes is what everybody else computes', () => {
    for (const text of ['', 'abc', 'é'.repeat(10_000)]) {
      expect(hashHex(algorithm, text)).toBe(expected(text))
      expect(hashHex(algorithm, Buffer.from(text))).toBe(expected(text))
    }
  })

  test('can be asked for in the middle, and goes on', () => {
    const hash = startHash(algorithm)
    expect(hash.hex()).toBe(expected(''))
    hash.update(Buffer.from('ab'))
    expect([hash.hex(), hash.hex()]).toEqual([expected('ab'), expected('ab')])
    hash.update(Buffer.from('c'))
    expect(hash.hex()).toBe(expected('abc'))
    expect(hash.algorithm).toBe(algorithm)
  })
})
