import { describe, expect, test } from 'bun:test'
import { bearerChallenge, type NeededScope, type TokenEndpoint } from '../../../src/http/challenges.ts'

const place: TokenEndpoint = { origin: 'https://registry.example.com', mount: '/v2', serviceName: 'Berth' }
const realm = 'Bearer realm="https://registry.example.com/v2/_token",service="Berth"'

function asked(more: Partial<NeededScope> = {}): NeededScope {
  return { right: 'pull', repository: 'team/app', mountFrom: undefined, ...more }
}

describe('the challenge for a token', () => {
  test('contains an absolute address in the mount of the request', () => {
    expect(bearerChallenge(place, 'unauthenticated', undefined)).toBe(realm)
    expect(bearerChallenge({ ...place, mount: '/api/2023-12-28/v2' }, 'unauthenticated', undefined)).toBe(
      'Bearer realm="https://registry.example.com/api/2023-12-28/v2/_token",service="Berth"',
    )
  })

  test.each([
    [asked(), 'repository:team/app:pull'],
    [asked({ right: 'push' }), 'repository:team/app:pull,push'],
    [asked({ right: 'delete' }), 'repository:team/app:delete'],
    [asked({ repository: undefined }), 'registry:catalog:*'],
    [asked({ right: 'push', mountFrom: 'base/os' }), 'repository:team/app:pull,push repository:base/os:pull'],
    // What cannot be quoted, or names no repository, is left out.
    [asked({ right: 'push', mountFrom: 'a"b' }), 'repository:team/app:pull,push'],
    [asked({ right: 'push', mountFrom: '' }), 'repository:team/app:pull,push'],
  ])('names what a token is needed for: %j', (request, scope) => {
    expect(bearerChallenge(place, 'unauthenticated', request)).toBe(`${realm},scope="${scope}"`)
  })

  test.each(['a"b', 'a b', 'a\\b', 'a,b', 'ä', 'a\r\nx: y', 'TEAM/APP', 'x'.repeat(256), ''])(
    'names no scope for the repository %j',
    (repository) => {
      expect(bearerChallenge(place, 'unauthenticated', asked({ repository }))).toBe(realm)
    },
  )
})
