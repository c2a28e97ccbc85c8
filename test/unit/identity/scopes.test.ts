import { describe, expect, test } from 'bun:test'
import { parseScopes } from '../../../src/identity/scopes.ts'

function read(...texts: readonly string[]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries([...parseScopes(texts).repositories].map(([name, rights]) => [name, [...rights].sort()]))
}

describe('a scope of a repository', () => {
  test.each([
    ['repository:app:pull', { app: ['pull'] }],
    ['repository:team/app:pull,push', { 'team/app': ['pull', 'push'] }],
    ['repository:app:push,pull,pull', { app: ['pull', 'push'] }],
    ['repository:app:delete', { app: ['delete'] }],
    ['repository:app:*', { app: ['delete', 'pull', 'push'] }],
    ['repository(plugin):app:pull', { app: ['pull'] }],
    // What is not known gives nothing; the rest still counts.
    ['repository:app:pull,operate,admin', { app: ['pull'] }],
    ['repository:app:operate', { app: [] }],
  ])('%s', (text, expected) => {
    expect(read(text)).toEqual(expected)
  })

  test('several, one a text or all in one, are the same', () => {
    const expected = { one: ['pull'], two: ['pull', 'push'] }

    expect(read('repository:one:pull', 'repository:two:pull,push')).toEqual(expected)
    expect(read('repository:one:pull repository:two:pull,push')).toEqual(expected)
    expect(read(' repository:one:pull  repository:two:pull,push ')).toEqual(expected)
  })

  test('of the same repository add up', () => {
    expect(read('repository:app:pull', 'repository:app:push')).toEqual({ app: ['pull', 'push'] })
  })
})

test.each([
  '',
  ' ',
  'repository',
  'repository:app',
  'repository:app:',
  'repository::pull',
  'repository:APP:pull',
  'repository:a//b:pull',
  'repository:../etc:pull',
  'repository:host:5000/app:pull',
  'repository:app*:pull',
  'repository:*:pull',
  `repository:${'a'.repeat(256)}:pull`,
  'repository:app:PULL',
  'repository:app:pull\n',
  'repository:app:pull;push',
  'Repository:app:pull',
  'registry:app:pull',
  'registry:catalog:*',
  'aws:app:pull',
  'repository:__proto__:pull',
])('nothing is given for %j', (text) => {
  expect(read(text)).toEqual({})
})

test.each([
  [true, 'registry:catalog:*'],
  [true, 'repository:app:pull registry:catalog:*'],
  [false, 'repository:app:*'],
  [false, 'registry:catalog:pull'],
  [false, 'registry:catalog'],
  [false, 'repository:registry:catalog:*'],
] as const)('the catalog is asked for (%p) by %s', (expected, text) => {
  expect(parseScopes([text]).catalog).toBe(expected)
})

test('the first 64 scopes count', () => {
  const many = Array.from({ length: 70 }, (_, number) => `repository:app${number}:pull`)

  expect(Object.keys(read(...many))).toHaveLength(64)
})

test('a long text without any end is read in no time', () => {
  // Quadratic reading of this would take minutes.
  expect(read(`repository:${':a'.repeat(500_000)}!`, `repository(${'a'.repeat(1_000_000)}`)).toEqual({})
})
