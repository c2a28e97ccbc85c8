import { describe, expect, test } from 'bun:test'
import { allRights, defaultRoles, rightsOf } from '../../../src/identity/rights.ts'

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
