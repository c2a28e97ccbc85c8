import { describe, expect, test } from 'bun:test'
import { isRepositoryName, parseReference, parseRepositoryName, parseTag } from '../../../src/oci/names.ts'
import { catchRefusal, refusalOf } from '../../support/basics/outcomes.ts'

const hex64 = '0'.repeat(64)

describe('a repository name', () => {
  test.each([
    'a',
    '0',
    'library/alpine',
    'a/b/c/d/e/f',
    'a.b',
    'a_b',
    'a__b',
    'a-b',
    'a---b',
    'a.b_c__d-e--f/0',
    'manifests/blobs/tags/list/uploads/referrers',
    'a'.repeat(255),
    `${'a/'.repeat(127)}a`,
  ])('may be %p', (text) => {
    expect(String(parseRepositoryName(text))).toBe(text)
  })

  test.each([
    ['empty', ''],
    ['an upper case letter', 'Library/alpine'],
    ['a slash in front', '/a'],
    ['a slash at the end', 'a/'],
    ['two slashes', 'a//b'],
    ['a dot alone', '.'],
    ['two dots as a part', 'a/../b'],
    ['two dots inside', 'a..b'],
    ['three underscores', 'a___b'],
    ['mixed separators', 'a._b'],
    ['a separator in front', '_a'],
    ['a separator at the end', 'a-'],
    ['a separator before a slash', 'a-/b'],
    ['the catalog', '_catalog'],
    ['a colon', 'a:b'],
    ['an at sign', 'a@b'],
    ['a backslash', 'a\\b'],
    ['a percent sign', 'a%2fb'],
    ['a space', 'a b'],
    ['a newline at the end', 'a\n'],
    ['a NUL', 'a\0'],
    ['another script', 'аlpine'],
    ['a combining mark', 'e\u0301'],
    ['256 letters', 'a'.repeat(256)],
  ])('with %s is refused', (_what, text) => {
    expect(isRepositoryName(text)).toBe(false)
    expect(refusalOf(() => parseRepositoryName(text))).toBe('name-invalid')
  })

  test('is shown cut when it is too long', () => {
    const refusal = catchRefusal(() => parseRepositoryName('A'.repeat(10_000)))
    expect(String(refusal?.details[0]?.['name']).length).toBe(255)
  })
})

describe('a tag', () => {
  test.each(['latest', '_', '0', 'V1.2.3-rc_1', 'a'.repeat(128), '1.0--x..y__z'])('may be %p', (text) => {
    expect(String(parseTag(text))).toBe(text)
  })

  test.each(['', '.a', '-a', 'a+b', 'a/b', 'a:b', 'a b', 'a\n', 'é', 'a\0', 'a'.repeat(129)])(
    'may not be %p',
    (text) => {
      expect(refusalOf(() => parseTag(text))).toBe('tag-invalid')
    },
  )
})

describe('a reference', () => {
  test('with a colon is a digest and never a tag', () => {
    expect(parseReference(`sha256:${hex64}`)).toEqual({ digest: `sha256:${hex64}` } as never)
    expect(refusalOf(() => parseReference('sha256:baddigeststring'))).toBe('digest-invalid')
    expect(refusalOf(() => parseReference(':'))).toBe('digest-invalid')
    expect(refusalOf(() => parseReference('latest:'))).toBe('digest-invalid')
  })

  test('without a colon is a tag, even when it looks like a digest without its algorithm', () => {
    expect(parseReference(hex64)).toEqual({ tag: hex64 } as never)
    expect(parseReference(`sha256-${hex64}.sig`)).toEqual({ tag: `sha256-${hex64}.sig` } as never)
  })
})
