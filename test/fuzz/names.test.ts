import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isWellFormedDigest, parseDigest } from '../../src/oci/digest.ts'
import { withoutParameters } from '../../src/oci/media-types.ts'
import { isRepositoryName, parseReference, parseRepositoryName, parseTag } from '../../src/oci/names.ts'
import { anyText, check, piecesOf, spoiled } from '../support/basics/fuzzing.ts'
import { refusalOf } from '../support/basics/outcomes.ts'
import { isDigestByTheBook, isNameByTheBook, isTagByTheBook } from './slow-grammar.ts'

const nearName = piecesOf(['a', '0', 'z9', '.', '_', '__', '-', '--', '/', 'A', '%', 'a/b', 'é', '\n'])
const nearTag = piecesOf(['a', 'Z', '0', '_', '.', '-', ':', '/', '+', 'x'.repeat(60), '\n'])
const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
const goodDigest = fc.oneof(
  hex(64).map((text) => `sha256:${text}`),
  hex(128).map((text) => `sha512:${text}`),
  hex(64).map((text) => `blake3:${text}`),
)
const nearDigest = fc.oneof(
  goodDigest,
  spoiled(goodDigest, fc.constantFrom('g', 'A', ':', '/', '\n', '0', 'é')),
  piecesOf(['sha256', 'sha512', ':', 'a', '+', '.', '_', '-', '=', 'A', '0'.repeat(64), '/', ' ']),
)

const component = fc.stringMatching(/^[a-z0-9]{1,8}(?:(?:\.|_|__|-{1,5})[a-z0-9]{1,8}){0,3}$/)
const goodName = fc.array(component, { minLength: 1, maxLength: 20 }).map((components) => components.join('/'))

test('a repository name is taken exactly when the slow reading of the grammar takes it', () => {
  check(fc.oneof(nearName, goodName, anyText), (text) => {
    expect(isRepositoryName(text)).toBe(isNameByTheBook(text))
    expect(refusalOf(() => parseRepositoryName(text))).toBe(isNameByTheBook(text) ? undefined : 'name-invalid')
  })
})

test('a tag is taken exactly when the slow reading of the grammar takes it', () => {
  check(fc.oneof(nearTag, anyText), (text) => {
    expect(refusalOf(() => parseTag(text))).toBe(isTagByTheBook(text) ? undefined : 'tag-invalid')
  })
})

test('a digest is taken unchanged if the slow reading of the grammar says so, and it has an algorithm of ours', () => {
  check(fc.oneof(nearDigest, anyText), (text) => {
    expect(isWellFormedDigest(text)).toBe(isDigestByTheBook(text))
    const refusal = refusalOf(() => expect(String(parseDigest(text))).toBe(text))
    const isOurs = /^sha(?:256|512):/.test(text)
    expect(refusal).toBe(!isDigestByTheBook(text) ? 'digest-invalid' : isOurs ? undefined : 'digest-unsupported')
  })
})

test('a reference is a digest when it holds a colon, else a tag, and never both', () => {
  check(fc.oneof(nearDigest, nearTag, anyText), (text) => {
    const refusal = refusalOf(() => {
      expect(Object.entries(parseReference(text))).toEqual([[text.includes(':') ? 'digest' : 'tag', text]])
    })
    if (refusal !== undefined) expect(refusal.startsWith(text.includes(':') ? 'digest-' : 'tag-')).toBe(true)
  })
})

test('a content type is the same with parameters and space around it, in whatever case', () => {
  const word = fc.stringMatching(/^[a-z0-9.+-]{1,20}$/)
  const space = fc.constantFrom('', ' ', '\t', '  ')
  check(word, word, space, anyText, fc.boolean(), (type, sub, around, parameters, isLoud) => {
    const plain = `${type}/${sub}`
    const written = `${around}${isLoud ? plain.toUpperCase() : plain}${around};${parameters}`
    expect(withoutParameters(written)).toBe(plain)
  })
})

// No clock here: what is quadratic or worse would not come to an end within the time that a test has.
test.each([
  ['letters', 'a'],
  ['separators', '-'],
  ['letters and separators', 'a-'],
  ['underscores', 'a__'],
  ['slashes', 'a/'],
  ['equals signs', 'a='],
])('the longest inputs that can be sent, of %s, come to an end', (_what, unit) => {
  for (const tail of ['', '!', ':']) {
    const text = unit.repeat(100_000) + tail
    expect(isRepositoryName(text)).toBe(false)
    expect(isWellFormedDigest(`x:${text}`)).toBe(false)
    expect(isWellFormedDigest(`${text}:x`)).toBe(false)
    expect(refusalOf(() => parseTag(text))).toBe('tag-invalid')
  }
})
