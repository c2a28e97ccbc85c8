// The scope in a challenge. What clients are told for each route: test/api/v2/scoped-token-rights.test.ts.
import { expect, test } from 'bun:test'
import { bearerChallenge, type NeededScope, type TokenEndpoint } from '../../../src/http/challenges.ts'

const place: TokenEndpoint = { origin: 'https://registry.example.com', mount: '/v2', serviceName: 'Berth' }
const realm = 'Bearer realm="https://registry.example.com/v2/_token",service="Berth"'
const own = ',scope="repository:team/app:pull,push"'

test.each([
  [{ mountFrom: 'base/os' }, ',scope="repository:team/app:pull,push repository:base/os:pull"'],
  // What cannot be quoted, or does not name a repository, is left out.
  ...['a"b', '', 'A/B'].map((mountFrom) => [{ mountFrom }, own] as const),
  ...['a"b', 'a b', 'a\\b', 'a,b', 'ä', 'a\r\nx: y', 'TEAM/APP', 'x'.repeat(256), ''].map(
    (repository) => [{ repository }, ''] as const,
  ),
] as readonly (readonly [Partial<NeededScope>, string])[])(
  'contains only names that can be quoted: %j',
  (more, scope) => {
    const needed: NeededScope = { right: 'push', repository: 'team/app', mountFrom: undefined, ...more }
    expect(bearerChallenge(place, 'unauthenticated', needed)).toBe(realm + scope)
  },
)
