import { describe, expect, test } from 'bun:test'
import {
  algorithmOf,
  digestFromHex,
  isSupported,
  isWellFormedDigest,
  parseDigest,
  parseDigestAlgorithm,
  parseWellFormedDigest,
} from '../../../src/oci/digest.ts'
import { refusalOf } from '../../support/basics/outcomes.ts'

const hex64 = '0123456789abcdef'.repeat(4)
const hex128 = hex64.repeat(2)

describe('a digest that content can have', () => {
  test.each([`sha256:${hex64}`, `sha512:${hex128}`])('%p is taken as it is', (text) => {
    expect(String(parseDigest(text))).toBe(text)
  })

  test.each([
    ['empty', ''],
    ['no algorithm', `:${hex64}`],
    ['no colon', `sha256${hex64}`],
    ['no encoding', 'sha256:'],
    ['a digit short', `sha256:${hex64.slice(1)}`],
    ['a digit long', `sha256:${hex64}0`],
    ['upper case hex', `sha256:${hex64.toUpperCase()}`],
    ['upper case algorithm', `SHA256:${hex64}`],
    ['letters beyond hex', `sha256:${'g'.repeat(64)}`],
    ['the length of the other algorithm', `sha512:${hex64}`],
    ['the other length', `sha256:${hex128}`],
    ['a second colon', `sha256:${hex64.slice(1)}:`],
    ['a newline at the end', `sha256:${hex64}\n`],
    ['a space in front', ` sha256:${hex64}`],
    ['a slash', `sha256:../${hex64.slice(3)}`],
    ['a NUL', `sha256:${hex64.slice(1)}\0`],
    ['letters of another script', `sha256:${hex64.slice(1)}а`],
    ['hex in full width', `sha256:${'０'.repeat(64)}`],
  ])('with %s it is refused', (_what, text) => {
    expect(refusalOf(() => parseDigest(text))).toBe('digest-invalid')
  })

  test.each([`blake3:${hex64}`, `md5:${hex64.slice(32)}`, 'sha384:abc', 'a+b.c_d-e:AZaz09=_-'])(
    '%p is well formed, but of no algorithm of ours',
    (text) => {
      expect(refusalOf(() => parseDigest(text))).toBe('digest-unsupported')
      expect(isWellFormedDigest(text)).toBe(true)
      expect(isSupported(parseWellFormedDigest(text))).toBe(false)
    },
  )

  test.each(['a++b:x', '+a:x', 'a-:x', 'A:x', 'a:', 'a:b:c', 'a:b/c', 'a b:c'])(
    '%p is not even well formed',
    (text) => {
      expect(isWellFormedDigest(text)).toBe(false)
    },
  )

  test('a text longer than 255 is refused, and shown no longer than that', () => {
    expect(isWellFormedDigest(`x:${'a'.repeat(253)}`)).toBe(true)
    expect(isWellFormedDigest(`x:${'a'.repeat(254)}`)).toBe(false)
  })
})

describe('an algorithm', () => {
  test('is one of the two that we compute', () => {
    expect(parseDigestAlgorithm('sha256')).toBe('sha256')
    expect(parseDigestAlgorithm('sha512')).toBe('sha512')
    for (const other of ['', 'SHA256', 'sha1', 'sha256 ', 'toString', '__proto__', 'blake3']) {
      expect(refusalOf(() => parseDigestAlgorithm(other))).toBe('digest-unsupported')
    }
  })

  test('is read off the digest', () => {
    expect(algorithmOf(digestFromHex('sha256', hex64))).toBe('sha256')
    expect(algorithmOf(digestFromHex('sha512', hex128))).toBe('sha512')
  })
})
