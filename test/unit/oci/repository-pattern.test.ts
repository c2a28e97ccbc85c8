import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { isRepositoryName, type RepositoryName } from '../../../src/oci/names.ts'
import {
  fixedPrefixOf,
  matchesPattern,
  parseRepositoryPattern,
  patternOf,
  type RepositoryPattern,
} from '../../../src/oci/repository-pattern.ts'
import { check, piecesOf, spoiled } from '../../support/basics/fuzzing.ts'

const parsed = (text: string): RepositoryPattern =>
  parseRepositoryPattern(text) ?? expect.unreachable(`no pattern: ${text}`)
const matches = (pattern: string, name: string) => matchesPattern(parsed(pattern), name as RepositoryName)

const texts = piecesOf(['a', 'b0', 'team', '/', '.', '_', '__', '-', '*', '*', 'A', ' '], 8)
const patterns = texts.map(parseRepositoryPattern).filter((pattern) => pattern !== undefined)
const names = piecesOf(['a', 'b0', 'team', '/', '.', '_', '-'], 8).filter(isRepositoryName)

/** The rule once more, by trying everything. */
function matchesSlowly(pattern: string, name: string): boolean {
  if (pattern === '') return name === ''
  if (pattern[0] !== '*') return name[0] === pattern[0] && matchesSlowly(pattern.slice(1), name.slice(1))
  return Array.from({ length: name.length + 1 }, (_, at) => at).some((at) =>
    matchesSlowly(pattern.slice(1), name.slice(at)),
  )
}

describe('a pattern', () => {
  test('may have up to four stars, but not two together', () => {
    const parse = (text: string) => parseRepositoryPattern(text) as string | undefined
    for (const text of ['*', 'team/app', 'a_*', 'team/*/app*', '*a*b*c*', 'a/*b']) expect(parse(text)).toBe(text)
    for (const text of ['', '**', 'team/**', '*a*b*c*d*', 'A/*', 'a b*', 'a%', 'a?b', 'a[b]', '/*', '*/', 'a//*']) {
      expect([text, parse(text)]).toEqual([text, undefined])
    }
  })

  test('is as long as a name may be at most', () => {
    expect(parseRepositoryPattern(`${'a'.repeat(254)}*`)).toBeDefined()
    expect(parseRepositoryPattern(`${'a'.repeat(255)}*`)).toBeUndefined()
  })

  test('is anything that some name matches, and nothing else', () => {
    const fillings = ['', 'a', 'a/a', '-', '_', '.', '/', 'a-', '-a', 'a/', '/a']
    const fill = (text: string): string[] => {
      const [head = '', ...rest] = text.split('*')
      return rest.reduce<string[]>(
        (soFar, part) => soFar.flatMap((one) => fillings.map((filling) => one + filling + part)),
        [head],
      )
    }
    check(
      piecesOf(['a', 'b0', '/', '.', '_', '-', '*'], 7).filter(
        (text) => !text.includes('**') && text.split('*').length <= 3,
      ),
      (text) => {
        expect(parseRepositoryPattern(text) !== undefined).toBe(fill(text).some(isRepositoryName))
      },
    )
  })
})

describe('what a pattern matches', () => {
  test('is the whole name, with any text for a star and no other wildcards', () => {
    const good = ['* a/b/c', 'team/* team/app/deep/er', 'team* team', '*/public a/b/public', 'a*a aa', '*ab*ab abab']
    const bad = [
      'team/* team',
      'team/* my/team/app',
      '*/public public',
      'a*a a',
      'ab*ba aba',
      '*ab*ab ab',
      'a_b axb',
      'a.b axb',
    ]
    for (const text of [...good, ...bad]) {
      const [pattern = '', name = ''] = text.split(' ')
      expect([text, matches(pattern, name)]).toEqual([text, good.includes(text)])
    }
  })

  test('is what trying everything finds', () => {
    check(patterns, names, (pattern, name) => {
      expect(matchesPattern(pattern, name)).toBe(matchesSlowly(pattern, name))
    })
  })

  test('is what trying everything finds, for names made from the pattern, or nearly', () => {
    const made = patterns.chain((pattern) =>
      fc
        .array(fc.constantFrom('', 'a', 'a/', '-a', 'team', 'b0/a'), { minLength: 5, maxLength: 5 })
        .map((fillings) => ({ pattern, name: pattern.replaceAll('*', () => fillings.pop() ?? '') })),
    )
    const near = made.chain(({ pattern, name }) =>
      fc
        .oneof(fc.constant(name), spoiled(fc.constant(name), fc.constantFrom('a', '/', '-')))
        .map((other) => [pattern, other] as const),
    )
    let matched = 0
    check(near, ([pattern, name]) => {
      if (matchesSlowly(pattern, name)) matched += 1
      expect(matchesPattern(pattern, name as RepositoryName)).toBe(matchesSlowly(pattern, name))
    })
    expect(matched).toBeGreaterThan(100)
  })

  test('takes no longer for a name that nearly matches everywhere', () => {
    const name = `${'a/'.repeat(126)}aa`

    expect(matches('*a/a/a*a/a/a*a/a/a*a/b', name)).toBe(false)
  })
})

test('every name that matches begins with the fixed prefix', () => {
  check(patterns, names, (pattern, name) => {
    if (matchesPattern(pattern, name)) expect(name.startsWith(fixedPrefixOf(pattern))).toBe(true)
  })
  expect(['*', 'team/*', 'a*b', 'exact'].map((text) => fixedPrefixOf(parsed(text)))).toEqual([
    '',
    'team/',
    'a',
    'exact',
  ])
})

test('the pattern of one name matches that name alone', () => {
  check(names, names, (name, other) => {
    expect(matchesPattern(patternOf(name), other)).toBe(name === other)
  })
})
