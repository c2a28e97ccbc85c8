// The one place that decides: every right, kind of caller and kind of grant.
import { describe, expect, test } from 'bun:test'
import { allRights } from '../../../src/identity/rights.ts'
import { RegistryRefusal, Unavailable } from '../../../src/oci/errors.ts'
import type { RepositoryName } from '../../../src/oci/names.ts'
import { parseRepositoryPattern, type RepositoryPattern } from '../../../src/oci/repository-pattern.ts'
import type { Grant, Principal, Right } from '../../../src/ports/identity.ts'
import { checkAllowed, isGrantable } from '../../../src/registry/access.ts'

const named = (text: string) => text as RepositoryName
const patterned = (text: string): RepositoryPattern => parseRepositoryPattern(text) ?? expect.unreachable(text)
const grant = (rights: readonly Right[], ...repositories: readonly string[]): Grant =>
  repositories.length === 0
    ? { rights: new Set(rights) }
    : { rights: new Set(rights), repositories: repositories.map(patterned) }

function principal(grants: readonly Grant[], rest: Partial<Principal> = {}): Principal {
  return { account: 'acme', subject: 'alice', roles: ['admin'], grants, fingerprint: '', ...rest }
}

/** How the check ends, in a word. */
function verdictOf(who: Principal, right: Right, repository?: string): string {
  try {
    checkAllowed(who, right, repository === undefined ? undefined : named(repository))
    return 'allowed'
  } catch (error) {
    if (error instanceof RegistryRefusal) return error.refusal
    return error instanceof Unavailable ? 'unavailable' : String(error)
  }
}

describe('a principal whose identity could not be confirmed', () => {
  const who = principal([grant(allRights)], { isUnconfirmed: true })

  test('pulls and pushes, and is told to come back for what cannot be taken back', () => {
    expect(allRights.map((right) => verdictOf(who, right, 'app'))).toEqual([
      'allowed',
      'allowed',
      'unavailable',
      'unavailable',
    ])
    expect(allRights.map((right) => isGrantable(who, right, named('app')))).toEqual([true, true, false, false])
  })

  test('is denied rights that it never had', () => {
    expect(verdictOf(principal([grant(['pull'])], { isUnconfirmed: true }), 'delete', 'app')).toBe('denied')
  })
})
