// Access while the identity of the caller could not be confirmed. All other decisions: test/api/rights.
import { expect, test } from 'bun:test'
import { allRights } from '../../../src/identity/rights.ts'
import { RegistryRefusal, Unavailable } from '../../../src/oci/errors.ts'
import type { RepositoryName } from '../../../src/oci/names.ts'
import type { Principal, Right } from '../../../src/ports/identity.ts'
import { checkAllowed, isGrantable } from '../../../src/registry/access.ts'

const app = 'app' as RepositoryName

function unconfirmed(...rights: readonly Right[]): Principal {
  const grants = [{ rights: new Set(rights) }]
  return { account: 'acme', subject: 'alice', roles: ['admin'], grants, fingerprint: '', isUnconfirmed: true }
}

/** How the check ends, in a word. */
function verdictOf(principal: Principal, right: Right): string {
  try {
    checkAllowed(principal, right, app)
    return 'allowed'
  } catch (error) {
    if (error instanceof RegistryRefusal) return error.refusal
    return error instanceof Unavailable ? 'unavailable' : String(error)
  }
}

test('an unconfirmed caller may pull and push, and gets 503 for what cannot be undone', () => {
  const admin = unconfirmed(...allRights)
  expect(allRights).toEqual(['pull', 'push', 'delete', 'operate'])
  expect(allRights.map((right) => verdictOf(admin, right))).toEqual([
    'allowed',
    'allowed',
    'unavailable',
    'unavailable',
  ])
  expect(allRights.map((right) => isGrantable(admin, right, app))).toEqual([true, true, false, false])
  expect(verdictOf(unconfirmed('pull'), 'delete')).toBe('denied')
})
