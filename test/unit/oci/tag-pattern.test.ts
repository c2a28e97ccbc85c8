import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseSemanticVersion } from '../../../src/oci/semantic-version.ts'
import { compileTagPattern, parseTagPattern } from '../../../src/oci/tag-pattern.ts'
import { check, piecesOf } from '../../support/basics/fuzzing.ts'

const matches = (text: string, tag: string) => {
  const pattern = parseTagPattern(text) ?? expect.unreachable(`no pattern: ${text}`)
  return compileTagPattern(pattern)(tag)
}

/** The rule once more, as a regular expression. It may backtrack, so only for short texts. */
const toExpression = (text: string) =>
  new RegExp(
    `^${text.replace(/[.?*{},]/g, (one) => ({ '*': '.*', '?': '.', '.': '\\.', '{': '(?:', '}': ')', ',': '|' })[one] ?? one)}$`,
  )

describe('a tag pattern', () => {
  test('has wildcards, ranges and alternatives, which are not nested', () => {
    for (const text of ['v*', 'v?.[0-9]*', '{main,release-*}', '{,v}1', '[-a.]', '{semver}', '_', 'a'.repeat(128)]) {
      expect(parseTagPattern(text) as string | undefined).toBe(text)
    }
    const bad = [
      '',
      'a b',
      '{a',
      '{a}',
      '{a,{b,c}}',
      'a,b',
      '[]',
      '[a',
      '[z-a]',
      '[a-]',
      'v{semver}',
      'a+',
      'a/b',
      '(a)',
    ]
    for (const text of [...bad, 'a'.repeat(129)]) expect([text, parseTagPattern(text)]).toEqual([text, undefined])
  })

  test('matches the whole tag', () => {
    const good = [
      'v* v1.2',
      '* a',
      'v? v1',
      '[0-9a].* 7.x',
      '{a,b*}-c bbb-c',
      '{,v}1 v1',
      '{,v}1 1',
      'a*a*a aaa',
      '[-x] -',
    ]
    const bad = ['v* av1', 'v? v', 'v? v12', '[0-9] x', '{a,b} ab', 'a*a aba.', 'a.b axb', 'A a']
    for (const text of [...good, ...bad]) {
      const [pattern = '', tag = ''] = text.split(' ')
      expect([text, matches(pattern, tag)]).toEqual([text, good.includes(text)])
    }
  })

  test('matches what an equal regular expression matches', () => {
    const patterns = piecesOf(['a', 'b', '.', '*', '?', '[ab]', '{a,b*}', '{,?a}'], 6).filter((text) => text !== '')
    let matched = 0
    check(patterns, piecesOf(['a', 'b', '.', 'c'], 6), (text, tag) => {
      const isMatch = toExpression(text).test(tag)
      if (isMatch) matched += 1
      expect(matches(text, tag)).toBe(isMatch)
    })
    expect(matched).toBeGreaterThan(50)
  })

  test('takes no longer for a tag that nearly matches everywhere, nor for a text that is nearly a pattern', () => {
    for (const text of ['*a'.repeat(63), '*'.repeat(127), '{*a,*b}'.repeat(18), '{a*,a*a*,*a*a}'.repeat(9)]) {
      expect(matches(`${text}c`, 'a'.repeat(128))).toBe(false)
    }
    for (const text of [`[${'a-'.repeat(60)}`, `{${'a,'.repeat(60)}`, `{${'[a-b]'.repeat(24)}`, '{,'.repeat(64)]) {
      expect(parseTagPattern(text)).toBeUndefined()
    }
  })
})

test('a semantic version has three numbers, and may have a `v` and a pre-release', () => {
  const show = (text: string) => Object.values(parseSemanticVersion(text) ?? {})
  expect(show('v1.20.3')).toEqual([1, 20, 3, undefined])
  expect(show('1.0.0-rc.1')).toEqual([1, 0, 0, 'rc.1'])
  for (const text of ['1.2', '1.2.3.4', '01.2.3', '1.2.3-', '1.2.3-a..b', '1.2.3-01', 'V1.2.3', 'a1.2.3', '1.2.3+a']) {
    expect([text, parseSemanticVersion(text)]).toEqual([text, undefined])
  }
  check(fc.tuple(fc.nat(), fc.nat(), fc.nat()), ([major, minor, patch]) => {
    expect(show(`${major}.${minor}.${patch}`)).toEqual([major, minor, patch, undefined])
    expect(matches('{semver}', `v${major}.${minor}.${patch}`)).toBe(true)
  })
})
