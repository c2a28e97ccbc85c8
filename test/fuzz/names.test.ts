import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isWellFormedDigest, parseDigest } from '../../src/oci/digest.ts'
import { withoutParameters } from '../../src/oci/media-types.ts'
import { isRepositoryName, parseReference, parseRepositoryName, parseTag } from '../../src/oci/names.ts'
import { anyText, check, piecesOf, spoiled } from '../support/basics/fuzzing.ts'
import { refusalOf } from '../support/basics/outcomes.ts'

const lower = 'abcdefghijklmnopqrstuvwxyz'
const upper = lower.toUpperCase()
const digits = '0123456789'
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

// The grammars of the distribution-spec once more, letter by letter and without a regular expression: slow, and written
// from the text of the specification, so that two readings of it can be compared.

function consistsOf(text: string, letters: string): boolean {
  return [...text].every((letter) => letters.includes(letter))
}

/** `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(\/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*`, of at most 255 letters. */
function isNameByTheBook(text: string): boolean {
  return text.length <= 255 && text.split('/').every(isPathComponent)
}

function isPathComponent(text: string): boolean {
  if (text === '' || !consistsOf(text, `${lower}${digits}._-`)) return false
  // Split into runs of letters and digits, and what stands between them.
  const runs: string[] = []
  for (const letter of text) {
    const isSeparator = '._-'.includes(letter)
    const last = runs.at(-1)
    if (last !== undefined && '._-'.includes(last.charAt(0)) === isSeparator) runs[runs.length - 1] = last + letter
    else runs.push(letter)
  }
  const separators = runs.filter((_run, at) => at % 2 === 1)
  const isFramed = runs.length % 2 === 1 && consistsOf(runs[0] ?? '', lower + digits)
  return isFramed && separators.every((one) => one === '.' || one === '_' || one === '__' || consistsOf(one, '-'))
}

/** `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}` */
function isTagByTheBook(text: string): boolean {
  const word = `${lower}${upper}${digits}_`
  return (
    text.length >= 1 && text.length <= 128 && word.includes(text.charAt(0)) && consistsOf(text.slice(1), `${word}.-`)
  )
}

/** `algorithm ":" encoded`; of the algorithms that we know, with the right letters and length. At most 255 letters. */
function isDigestByTheBook(text: string): boolean {
  const colon = text.indexOf(':')
  if (colon === -1 || text.length > 255) return false
  const [algorithm, encoded] = [text.slice(0, colon), text.slice(colon + 1)]
  if (encoded === '' || !consistsOf(encoded, `${lower}${upper}${digits}=_-`)) return false
  const known = new Map([
    ['sha256', 64],
    ['sha512', 128],
  ]).get(algorithm)
  if (known !== undefined) return encoded.length === known && consistsOf(encoded, `${digits}abcdef`)
  let component = ''
  for (const letter of `${algorithm}+`) {
    if (!'+._-'.includes(letter)) component += letter
    else if (component === '' || !consistsOf(component, lower + digits)) return false
    else component = ''
  }
  return true
}
