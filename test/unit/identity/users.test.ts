import { describe, expect, test } from 'bun:test'
import { parsePassword, parseRoles, parseUserName } from '../../../src/identity/users.ts'
import { refusalOf } from '../../support/basics/outcomes.ts'

describe('what can be', () => {
  test.each(['a', 'ann', 'apikeys', 'ann.example@host+1_x-2', '0', 'x'.repeat(128)])('a name: %p', (name) => {
    expect(String(parseUserName(name))).toBe(name)
  })

  test.each([
    '',
    ' ann',
    'ann ',
    '-ann',
    '@ann',
    'an/n',
    'an:n',
    'ann\n',
    'änn',
    'x'.repeat(129),
    '../x',
    'a%20b',
    'apikey',
    'bearer',
    'ApiKey',
    'BEARER',
  ])('no name: %j', (name) => {
    expect(refusalOf(() => parseUserName(name))).toBe('identity-invalid')
  })

  test('roles: each once, in their order, 32 at most', () => {
    const many = Array.from({ length: 32 }, (_, index) => `role-${index}`)
    expect(parseRoles([])).toEqual([])
    expect(parseRoles(['b', 'a', 'b', 'registry:pull'])).toEqual(['b', 'a', 'registry:pull'])
    expect(parseRoles(many)).toEqual(many)
    expect(refusalOf(() => parseRoles([...many, 'one-more']))).toBe('identity-invalid')
  })

  test.each(['', ' ', '-a', 'a b', 'a,b', 'a\n', 'ä', 'x'.repeat(65)])('no role: %j', (role) => {
    expect(refusalOf(() => parseRoles(['reader', role]))).toBe('identity-invalid')
  })

  test('a password: of 12 to 1024 characters, whatever they are', () => {
    for (const good of ['x'.repeat(12), 'x'.repeat(1_024), ' '.repeat(12), '\0'.repeat(12), 'ünïcödé-letters']) {
      expect(parsePassword(good)).toBe(good)
    }
    for (const bad of ['', 'x'.repeat(11), 'x'.repeat(1_025)]) {
      expect(refusalOf(() => parsePassword(bad))).toBe('identity-invalid')
    }
  })
})
