// What a scoped token opens, and what a client is told that needs another one.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { pushApiImage, pushBlob } from '../../support/api/api-images.ts'
import { type Question, type Reply, verdictOf } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { askForToken, bearing, fetchToken, startBearerApi } from '../../support/api/scoped-tokens.ts'

const server = await startBearerApi({ BERTH_AUTH__ANONYMOUS_PULL: 'public/*' })
afterAll(() => server.stop())
const reader = await addPerson(server, { name: 'rita', roles: ['reader'] })
const limited = await addPerson(server, {
  name: 'lou',
  roles: ['writer'],
  limits: { repositories: ['team/*' as never] },
})

const realm = `Bearer realm="${server.url}/v2/_token",service="Berth"`
const anonymous: Question = { key: 'none' }

function challengeOf(reply: Reply): readonly [number, string | null] {
  return [reply.status, reply.headers.get('www-authenticate')]
}

beforeAll(async () => {
  for (const name of ['team/app', 'team/other', 'public/app', 'private/app']) await pushApiImage(server, name, 'v1')
})

describe('an anonymous caller is told which token to fetch', () => {
  test.each([
    ['GET', '/v2/', undefined],
    ['GET', '/v2/team/app/manifests/v1', 'repository:team/app:pull'],
    ['HEAD', '/v2/team/app/manifests/v1', 'repository:team/app:pull'],
    ['GET', '/v2/team/app/tags/list', 'repository:team/app:pull'],
    ['PUT', '/v2/team/app/manifests/v1', 'repository:team/app:pull,push'],
    ['POST', '/v2/team/app/blobs/uploads/', 'repository:team/app:pull,push'],
    ['PATCH', '/v2/team/app/blobs/uploads/some-id', 'repository:team/app:pull,push'],
    ['DELETE', '/v2/team/app/manifests/v1', 'repository:team/app:delete'],
    ['GET', '/v2/_catalog', 'registry:catalog:*'],
    [
      'POST',
      '/v2/team/app/blobs/uploads/?mount=x&from=base/os',
      'repository:team/app:pull,push repository:base/os:pull',
    ],
    ['POST', '/v2/team/app/blobs/uploads/?from=base/os', 'repository:team/app:pull,push'],
    ['GET', '/v2/NOT/valid/tags/list', undefined],
    ['GET', '/v2/no-such-endpoint', undefined],
  ])('by %s %s', async (method, path, scope) => {
    const expected = scope === undefined ? realm : `${realm},scope="${scope}"`

    expect(challengeOf(await server.ask(method, path, anonymous))).toEqual([401, expected])
  })
})

describe('a token for one repository', () => {
  test.each([
    ['another repository', 'GET', '/v2/team/other/manifests/v1', 'repository:team/other:pull'],
    ['one whose name goes on', 'GET', '/v2/team/app2/tags/list', 'repository:team/app2:pull'],
    ['one inside of it', 'GET', '/v2/team/app/inner/tags/list', 'repository:team/app/inner:pull'],
    ['one that is not there', 'GET', '/v2/no/such/tags/list', 'repository:no/such:pull'],
    ['another right', 'POST', '/v2/team/app/blobs/uploads/', 'repository:team/app:pull,push'],
    ['deletion', 'DELETE', '/v2/team/app/manifests/v1', 'repository:team/app:delete'],
    ['the catalog', 'GET', '/v2/_catalog', 'registry:catalog:*'],
  ])('is not enough for %s, and its owner learns which to fetch', async (_, method, path, scope) => {
    const { token } = await fetchToken(server, 'repository:team/app:pull')
    const reply = await server.ask(method, path, bearing(token))

    expect((await server.ask('GET', '/v2/team/app/manifests/v1', bearing(token))).status).toBe(200)
    expect(challengeOf(reply)).toEqual([401, `${realm},scope="${scope}",error="insufficient_scope"`])
    expect(verdictOf(reply)).toBe('401 DENIED')
  })
})

test.each([
  ['POST', '/v2/team/app/blobs/uploads/'],
  ['DELETE', '/v2/team/app/manifests/v1'],
])('credentials that come themselves and have not the right are 403 for %s %s', async (method, path) => {
  const reply = await server.ask(method, path, { key: reader })

  expect(challengeOf(reply)).toEqual([403, null])
  expect(verdictOf(reply)).toBe('403 DENIED')
})

test.each<readonly [string, Question, string, readonly string[]]>([
  [
    'a caller who may pull everything',
    {},
    'registry:catalog:*',
    ['private/app', 'public/app', 'team/app', 'team/other'],
  ],
  ['a limited key, what the key may pull', { key: limited }, 'registry:catalog:*', ['team/app', 'team/other']],
  ['an anonymous caller, nothing', anonymous, '', []],
])('the catalog shows to a token of %s', async (_, caller, scope, names) => {
  const issued = await fetchToken(server, 'registry:catalog:*', caller)
  const reply = await server.ask('GET', '/v2/_catalog', bearing(issued.token))

  expect(issued.scope).toBe(scope)
  expect(reply.status).toBe(names.length > 0 ? 200 : 401)
  if (names.length > 0) expect(reply.json()).toEqual({ repositories: names })
  expect((await server.ask('GET', '/v2/team/app/tags/list', bearing(issued.token))).status).toBe(401)
})

test.each([
  ['is done by a token for both', 'team/other', undefined, ['team/app:pull,push', 'team/other:pull'], 201],
  ['asks for a token for both, by a token for one alone', 'private/app', undefined, ['team/app:pull,push'], 401],
  [
    'is an upload, by a token that was requested for both and may not pull from the other',
    'private/app',
    limited,
    ['team/app:pull,push', 'private/app:pull'],
    202,
  ],
])('a mount from another repository %s', async (_, from, key, scopes, status) => {
  const digest = await pushBlob(server, from, 'to be mounted')
  const asked = scopes.map((scope) => `repository:${scope}`).join(' ')
  const { token } = await fetchToken(server, asked, key === undefined ? {} : { key })
  const reply = await server.ask('POST', `/v2/team/app/blobs/uploads/?mount=${digest}&from=${from}`, bearing(token))
  const wanted = `repository:team/app:pull,push repository:${from}:pull`

  expect(challengeOf(reply)).toEqual([
    status,
    status === 401 ? `${realm},scope="${wanted}",error="insufficient_scope"` : null,
  ])
})

describe('where some repositories are open to anonymous callers', () => {
  test('an anonymous caller gets a token to pull those, and no more', async () => {
    const asked = 'repository:public/app:pull,push,delete repository:private/app:pull registry:catalog:*'
    const { scope, token } = await fetchToken(server, asked, anonymous)

    expect(scope).toBe('repository:public/app:pull')
    expect((await server.ask('GET', '/v2/public/app/manifests/v1', bearing(token))).status).toBe(200)
  })

  test.each([
    ['GET', '/v2/private/app/manifests/v1'],
    ['GET', '/v2/publicity/tags/list'],
    ['POST', '/v2/public/app/blobs/uploads/'],
    ['DELETE', '/v2/public/app/manifests/v1'],
    ['GET', '/v2/'],
  ])('%s %s asks an anonymous caller for credentials, with a token as without', async (method, path) => {
    const { token } = await fetchToken(server, 'repository:public/app:pull', anonymous)

    const [status, challenge] = challengeOf(await server.ask(method, path, anonymous))

    expect([status, challenge?.startsWith(realm)]).toEqual([401, true])
    // Told so, containerd does not try the same token again and again.
    expect(challengeOf(await server.ask(method, path, bearing(token)))).toEqual([
      401,
      `${challenge},error="insufficient_scope"`,
    ])
  })

  test('an anonymous caller needs no token', async () => {
    expect((await server.ask('GET', '/v2/public/app/manifests/v1', anonymous)).status).toBe(200)
  })

  test('bad credentials do not count as no credentials', async () => {
    expect((await askForToken(server, ['repository:public/app:pull'], { key: 'wrong' })).status).toBe(401)
  })
})
