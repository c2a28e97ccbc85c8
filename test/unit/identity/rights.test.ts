import { describe, expect, test } from 'bun:test'
import {
  allRights,
  allRightsOf,
  defaultRoles,
  grantOf,
  isRight,
  rightsOf,
  unlimitedRightsOf,
} from '../../../src/identity/rights.ts'
import { parseRepositoryPattern } from '../../../src/oci/repository-pattern.ts'
import type { Grant, Right } from '../../../src/ports/identity.ts'

const repositories = [parseRepositoryPattern('team/*')].filter((pattern) => pattern !== undefined)
const rights = (...some: Right[]): ReadonlySet<Right> => new Set(some)

describe('the rights of roles', () => {
  test('by default: an administrator may all, a writer all but operate, a reader pull', () => {
    expect([...rightsOf(['admin'], defaultRoles)]).toEqual([...allRights])
    expect([...rightsOf(['writer'], defaultRoles)]).toEqual(['pull', 'push', 'delete'])
    expect([...rightsOf(['reader'], defaultRoles)]).toEqual(['pull'])
  })

  test.each([[[]], [['nobody']], [['Admin']], [['admin ']], [['__proto__', 'constructor', 'toString']]])(
    'of %j are none',
    (roles) => {
      expect(rightsOf(roles, defaultRoles).size).toBe(0)
    },
  )

  test('of several roles are those of all, each once', () => {
    const map = new Map([
      ['a', ['pull'] as const],
      ['b', ['pull', 'operate'] as const],
    ])
    expect([...rightsOf(['a', 'b', 'c'], map)]).toEqual(['pull', 'operate'])
  })
})

test('a right is one of four words, exactly so', () => {
  expect(allRights.every(isRight)).toBe(true)
  expect(['', 'Pull', 'pull ', 'admin', '*', 'constructor'].some(isRight)).toBe(false)
})

describe('the rights of somebody with several grants', () => {
  const grants: readonly Grant[] = [
    { rights: rights('pull') },
    { rights: rights('push', 'operate'), repositories },
    { rights: rights('delete'), repositories: [] },
  ]

  test('are anywhere those of all of them', () => {
    expect(allRightsOf({ grants })).toEqual(rights('pull', 'push', 'operate', 'delete'))
    expect(allRightsOf({ grants: [] })).toEqual(rights())
  })

  test('to pass on are those of grants without a limit', () => {
    expect(unlimitedRightsOf({ grants })).toEqual(rights('pull'))
    expect(unlimitedRightsOf({ grants: grants.slice(1) })).toEqual(rights())
  })
})

describe('a grant with limits', () => {
  const all = rights(...allRights)

  test.each<[string, Parameters<typeof grantOf>[1], Grant]>([
    ['none', { repositories: undefined }, { rights: all }],
    ['rights', { rights: ['pull', 'push'], repositories: undefined }, { rights: rights('pull', 'push') }],
    ['no rights', { rights: [], repositories: undefined }, { rights: rights() }],
    ['repositories', { repositories }, { rights: all, repositories }],
    ['no repositories', { repositories: [] }, { rights: all, repositories: [] }],
    ['both', { rights: ['pull'], repositories }, { rights: rights('pull'), repositories }],
  ])('of %s', (_, limits, expected) => {
    expect(grantOf(all, limits)).toEqual(expected)
  })

  test('never gives what was not there', () => {
    expect(grantOf(rights('pull'), { rights: ['push', 'operate'], repositories: undefined })).toEqual({
      rights: rights(),
    })
  })
})
