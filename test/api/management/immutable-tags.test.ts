// Immutable tags over the wire: the rules, who may set them, and what they refuse.
import { afterAll, expect, test } from 'bun:test'
import { pushApiImage, putManifest } from '../../support/api/api-images.ts'
import { api, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { askedBy } from '../../support/api/wired-registry.ts'

const server = await startApi()
afterAll(() => server.stop())
const maker = askedBy(
  server,
  await addPerson(server, { name: 'maker', roles: ['admin'], limits: { rights: ['pull', 'push', 'delete'] } }),
)

const name = 'team/app'
const path = `${api}/policies/immutable-tags`
const put = (policy: unknown, asking = server) =>
  asking.ask('PUT', path, { headers: { 'content-type': 'application/json' }, body: JSON.stringify(policy) })
const remove = (reference: string, asking = server) => asking.ask('DELETE', `/v2/${name}/manifests/${reference}`)
const rule = { repositories: ['team/*'], exceptRepositories: [], tags: ['v*', '{semver}'], exceptTags: ['*-dev'] }

test('rules are set, read and removed by operators', async () => {
  const unset = { rules: [], changedAt: null, changedBy: null }
  expect((await server.ask('GET', path)).json<unknown>()).toEqual(unset)
  const reply = await put({ rules: [rule, {}] })
  const all = { repositories: ['*'], exceptRepositories: [], tags: ['*'], exceptTags: [] }

  expect(reply.json<unknown>()).toEqual({ rules: [rule, all], changedAt: expect.any(String), changedBy: 'admin' })
  expect((await server.ask('GET', path)).text).toBe(reply.text)
  expect([(await put({ rules: [] }, maker)).status, (await maker.ask('GET', path)).status]).toEqual([403, 403])
  expect([(await server.ask('DELETE', path)).status, (await server.ask('DELETE', path)).status]).toEqual([204, 204])
  expect((await server.ask('GET', path)).json<unknown>()).toEqual(unset)
})

test('an immutable tag keeps its manifest, and an exception does not', async () => {
  await put({ rules: [rule] })
  const one = await pushApiImage(server, name, 'v1', { config: '{"version":1}' })
  const two = await pushApiImage(server, name, 'v1-dev', { config: '{"version":2}' })
  await pushApiImage(server, name, 'v1-dev', { config: '{"version":1}' })

  const refused = [
    await putManifest(server, name, 'v1', two),
    await putManifest(server, name, `${two.digest}?tag=new&tag=v1`, two),
    await remove('v1', maker),
    await remove(one.digest, maker),
  ]
  for (const { status, json } of refused) {
    const { errors } = json<{ errors: { code: string; message: string; detail: unknown }[] }>()
    expect([status, errors[0]?.code, errors[0]?.detail]).toEqual([409, 'DENIED', { tag: 'v1' }])
  }
  const tags = (await server.ask('GET', `/v2/${name}/tags/list`)).json<{ tags: string[] }>().tags
  expect(tags).toEqual(['v1', 'v1-dev'])
  expect((await putManifest(server, name, 'v1', one)).status).toBe(201)
  expect([(await remove('v1')).status, (await putManifest(server, name, 'v1', two)).status]).toEqual([202, 201])
})

test('a faulty rule is refused with the path of its field', async () => {
  const many = (count: number, entry: unknown) => Array.from({ length: count }, () => entry)
  const cases: readonly (readonly [unknown, string])[] = [
    [{}, 'rules: must be an array'],
    [[], 'the request body is not valid: must be a JSON object'],
    [{ rules: [{ tag: ['v*'] }] }, 'rules[0].tag: is not a member here, which can be repositories'],
    [{ rules: [{}, { tags: ['v*', 'a b'] }] }, 'rules[1].tags[1]: must be a tag with wildcards'],
    [{ rules: [{ repositories: ['team/**'] }] }, 'rules[0].repositories[0]: must be the name of a repository'],
    [{ rules: [{ tags: [] }] }, 'rules[0].tags: must have an entry'],
    [{ rules: [{ exceptTags: [7] }] }, 'rules[0].exceptTags[0]: must be a string'],
    [{ rules: many(51, {}) }, 'rules: must have at most 50 entries'],
    [{ rules: [{ tags: many(51, 'a') }] }, 'rules[0].tags: must have at most 50 entries'],
  ]
  for (const [policy, message] of cases) {
    const reply = await put(policy)
    expect([reply.status, reply.json<{ msg: string }>().msg.slice(0, message.length)]).toEqual([400, message])
  }
  expect((await put({ rules: many(40, { tags: many(50, 'x'.repeat(128)) }) })).status).toBe(400)
})
