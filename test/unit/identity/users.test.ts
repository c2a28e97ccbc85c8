// The texts of which users, roles and requested scopes consist.
import { describe, expect, test } from 'bun:test'
import { parseRoles, parseUserName } from '../../../src/identity/names.ts'
import { parseScopes } from '../../../src/identity/scopes.ts'
import { refusalOf } from '../../support/basics/outcomes.ts'

describe('the name of a user', () => {
  test.each(['a', 'ann', 'apikeys', 'ann.example@host+1_x-2', '0', 'x'.repeat(128)])('may be %p', (name) => {
    expect(String(parseUserName(name))).toBe(name)
  })

  test.each([
    ...['', ' ann', 'ann ', '-ann', '@ann', 'an/n', 'an:n', 'ann\n', 'änn', 'x'.repeat(129), '../x', 'a%20b'],
    // With these names, Basic credentials are keys and tokens.
    ...['apikey', 'bearer', 'ApiKey', 'BEARER'],
  ])('may not be %j', (name) => {
    expect(refusalOf(() => parseUserName(name))).toBe('identity-invalid')
  })
})

test('roles are kept in their order, each once, 32 at most', () => {
  const many = Array.from({ length: 32 }, (_, index) => `role-${index}`)
  expect(parseRoles([])).toEqual([])
  expect(parseRoles(['b', 'a', 'b', 'registry:pull'])).toEqual(['b', 'a', 'registry:pull'])
  expect(parseRoles(many)).toEqual(many)
  for (const roles of [
    [...many, 'one-more'],
    ...['', ' ', '-a', 'a b', 'a,b', 'a\n', 'ä', 'x'.repeat(65)].map((one) => [one]),
  ]) {
    expect([roles, refusalOf(() => parseRoles(roles))]).toEqual([roles, 'identity-invalid'])
  }
})

/** The rights over each repository, and over the catalog if it is requested. */
function read(...texts: readonly string[]): Readonly<Record<string, string>> {
  const { repositories, catalog } = parseScopes(texts)
  const rights = [...repositories].map(([name, own]) => [name, [...own].sort().join()] as const)
  return { ...Object.fromEntries(rights), ...(catalog ? { CATALOG: 'all' } : {}) }
}

describe('a requested scope', () => {
  const nothing = {}
  test.each([
    ['repository:app:pull', { app: 'pull' }],
    ['repository:team/app:pull,push', { 'team/app': 'pull,push' }],
    ['repository:app:push,pull,pull', { app: 'pull,push' }],
    ['repository:app:delete', { app: 'delete' }],
    ['repository:app:*', { app: 'delete,pull,push' }],
    ['repository(plugin):app:pull', { app: 'pull' }],
    [' repository:one:pull  repository:two:pull,push ', { one: 'pull', two: 'pull,push' }],
    ['repository:app:pull repository:app:push', { app: 'pull,push' }],
    // An unknown action gives nothing. The rest counts.
    ['repository:app:pull,operate,admin', { app: 'pull' }],
    ['repository:app:operate', { app: '' }],
    ['registry:catalog:*', { CATALOG: 'all' }],
    ['repository:app:pull registry:catalog:*', { app: 'pull', CATALOG: 'all' }],
    ...['registry:catalog:pull', 'registry:catalog', 'repository:registry:catalog:*'].map(
      (text) => [text, nothing] as const,
    ),
    ...['', ' ', 'repository', 'repository:app', 'repository:app:', 'repository::pull'].map(
      (text) => [text, nothing] as const,
    ),
    ...['APP', 'a//b', '../etc', 'host:5000/app', 'app*', '*', 'a'.repeat(256), '__proto__'].map(
      (name) => [`repository:${name}:pull`, nothing] as const,
    ),
    ...['repository:app:PULL', 'repository:app:pull\n', 'repository:app:pull;push'].map(
      (text) => [text, nothing] as const,
    ),
    ...['Repository:app:pull', 'registry:app:pull', 'aws:app:pull'].map((text) => [text, nothing] as const),
  ] as const)('%j', (text, expected) => {
    expect(read(text)).toEqual(expected)
  })

  test('may be spread over several texts, of which the first 64 scopes count', () => {
    expect(read('repository:one:pull', 'repository:two:pull,push')).toEqual({ one: 'pull', two: 'pull,push' })
    expect(
      Object.keys(read(...Array.from({ length: 70 }, (_, number) => `repository:app${number}:pull`))),
    ).toHaveLength(64)
  })

  test('that is long and never ends is parsed in no time', () => {
    // An algorithm of quadratic cost would take minutes.
    expect(read(`repository:${':a'.repeat(500_000)}!`, `repository(${'a'.repeat(1_000_000)}`)).toEqual({})
  })
})
