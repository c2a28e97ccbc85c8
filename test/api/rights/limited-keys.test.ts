// API keys that are good for some repositories only, against every operation of the route table; and keys that expire.
import { afterAll, describe, expect, test } from 'bun:test'
import { parseRepositoryPattern, type RepositoryPattern } from '../../../src/oci/repository-pattern.ts'
import type { KeyLimits } from '../../../src/ports/api-keys.ts'
import { pushBlob } from '../../support/api/api-images.ts'
import { identity } from '../../support/api/api-server.ts'
import { json, makeUser, type ShownKey, usersPath } from '../../support/api/managed-users.ts'
import { addPerson } from '../../support/api/people.ts'
import {
  askFor,
  emptyStock,
  exampleOf,
  fillStock,
  type Operation,
  operations,
} from '../../support/api/route-examples.ts'
import { askedBy, wireRegistry } from '../../support/api/wired-registry.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('limited-keys')
const registry = await wireRegistry(temporaryFolder())
afterAll(() => registry.stop())

const patterns = (...texts: readonly string[]): readonly RepositoryPattern[] =>
  texts.map((text) => parseRepositoryPattern(text) ?? expect.unreachable(text))

const key = await addPerson(registry, {
  name: 'limited',
  roles: ['admin'],
  limits: { repositories: patterns('team/*', 'exact/one') },
})
const limited = askedBy(registry, key)
const elsewhere = await fillStock(registry, 'other/app', { user: 'limited', apiKeyName: 'test' })

const ofRepositories = operations.filter(({ route }) => route.access === 'repository')
const ofService = operations.filter(({ route }) => route.access === 'known caller')
const named = (table: readonly Operation[]) => table.map((operation) => [operation.title, operation] as const)
let made = 0

describe('in a repository that the key is for', () => {
  test.each(named(ofRepositories))('%s is done', async (_, operation) => {
    made += 1
    const repository = `team/app-${made}`
    const stock = await fillStock(limited, repository)

    expect((await askFor(limited, operation, stock)).status).toBe(exampleOf(operation.route).status)
  })

  test('and in one that is named in full, but in none whose name merely begins so', async () => {
    await pushBlob(limited, 'exact/one', 'content')
    const beside = ['exact/one/more', 'exact/on', 'exact/one-more', 'team', 'teams/app', 'my/team/app', 'tea/m']
    const statuses = await Promise.all(
      beside.map(async (name) => (await limited.ask('POST', `/v2/${name}/blobs/uploads/`)).status),
    )

    expect(statuses).toEqual(beside.map(() => 403))
  })
})

describe('in another repository', () => {
  test.each(named(ofRepositories))('%s is denied in the same words whether it exists or not', async (_, operation) => {
    registry.statements.length = 0
    const there = await askFor(limited, operation, elsewhere)
    const nowhere = await askFor(limited, operation, emptyStock('other/none'))

    expect([there.status, nowhere.status]).toEqual([403, 403])
    expect(nowhere.text).toBe(there.text)
    const denied = { msg: 'requested access to the resource is denied' }
    const expected = operation.mount === '' ? denied : { ...denied, errors: [{ code: 'DENIED' }] }
    if (operation.method !== 'HEAD') expect(there.json()).toMatchObject(expected)
    // The store was not even asked.
    expect(registry.statements).toEqual([])
  })

  test('nothing was changed by that', async () => {
    const replies = await Promise.all(
      ['manifests/v1', `blobs/${elsewhere.spareDigest}`, `blobs/uploads/${elsewhere.uploadId}`].map((rest) =>
        registry.ask('GET', `/v2/other/app/${rest}`),
      ),
    )

    expect(replies.map(({ status }) => status)).toEqual([200, 200, 204])
    expect((await registry.ask('GET', '/v2/other/none/tags/list')).status).toBe(404)
  })
})

describe('outside the repositories', () => {
  test.each(named(ofService))(
    '%s is denied where it takes the right to operate, although its user may',
    async (_, operation) => {
      const needsRight = operation.route.access === 'known caller' && operation.route.right !== undefined

      expect((await askFor(limited, operation, elsewhere)).status).toBe(needsRight ? 403 : 200)
    },
  )

  test("the key's user may do all that by a key without limits", async () => {
    expect((await registry.ask('GET', `${identity}/users/limited/keys`)).status).toBe(200)
  })
})

describe('a mount', () => {
  const mount = async (asker: typeof limited, query: string) => {
    made += 1
    return (await asker.ask('POST', `/v2/team/target-${made}/blobs/uploads/?mount=${query}`)).status
  }

  test('takes a blob only from where the key may pull; from elsewhere it is an upload, as from nowhere', async () => {
    const digest = await pushBlob(registry, 'other/app', 'first out of reach, then within')
    const queries = [`${digest}&from=other/app`, `${digest}&from=other/none`, digest]
    for (const query of queries) expect([query, await mount(limited, query)]).toEqual([query, 202])
    await pushBlob(registry, 'team/holder', 'first out of reach, then within')

    expect([await mount(limited, queries[0] ?? ''), await mount(limited, digest)]).toEqual([202, 201])
  })

  test.each(['other/app', 'other/none'])('into a repository out of reach is denied: %s', async (name) => {
    const digest = await pushBlob(limited, 'team/holder', 'within reach')
    for (const from of ['&from=team/holder', '']) {
      expect((await limited.ask('POST', `/v2/${name}/blobs/uploads/?mount=${digest}${from}`)).status).toBe(403)
    }
  })

  test('by a key that may push but not pull takes nothing', async () => {
    const limits = { rights: ['push'], repositories: patterns('team/*') } as const
    const pusher = askedBy(registry, await addPerson(registry, { name: 'pusher', roles: ['admin'], limits }))
    const digest = await pushBlob(registry, 'team/holder', 'may not be pulled')

    expect([await mount(pusher, `${digest}&from=team/holder`), await mount(pusher, digest)]).toEqual([202, 202])
  })
})

test.each<readonly [string, Partial<KeyLimits>, readonly number[]]>([
  ['for no repositories can be shown, and opens nothing', { repositories: [] }, [200, 200, 403, 403, 403, 403]],
  ['without rights may not even ask for the list', { rights: [] }, [200, 403, 403, 403, 403, 403]],
  [
    'for rights and repositories has only the rights, only there',
    { rights: ['pull'], repositories: patterns('team/*') },
    [200, 200, 200, 403, 403, 403],
  ],
])('a key %s', async (_, limits, expected) => {
  made += 1
  await pushBlob(registry, 'team/holder', 'something')
  const asked = askedBy(registry, await addPerson(registry, { name: `made-${made}`, roles: ['admin'], limits }))
  const statuses: number[] = []
  for (const [method, path] of [
    ['GET', '/v2/'],
    ['GET', '/v2/_catalog'],
    ['GET', '/v2/team/holder/tags/list'],
    ['POST', '/v2/team/holder/blobs/uploads/'],
    ['DELETE', '/v2/team/holder/manifests/v1'],
    ['GET', '/v2/other/app/tags/list'],
  ] as const) {
    statuses.push((await asked.ask(method, path)).status)
  }

  expect(statuses).toEqual([...expected])
})

describe('a key that expires', () => {
  const end = Date.now() + 3_600_000
  const endText = new Date(end).toISOString()

  test('creates keys that expire no later, and sets no password, which would not expire', async () => {
    const limits = { expiresAt: end }
    const operator = askedBy(registry, await addPerson(registry, { name: 'guest', roles: ['admin'], limits }))
    await makeUser(registry, 'robot')
    const keys = `${usersPath}/robot/keys`
    const create = async (body: unknown) => (await operator.ask('POST', keys, json(body))).json()
    const sooner = new Date(end - 60_000).toISOString()

    expect(await create({ name: 'absent' })).toMatchObject({ expiresAt: endText })
    expect(await create({ name: 'null', expiresAt: null })).toMatchObject({ expiresAt: endText })
    expect(await create({ name: 'sooner', expiresAt: sooner })).toMatchObject({ expiresAt: sooner })
    expect(await create({ name: 'later', expiresAt: new Date(end + 1).toISOString() })).toEqual({
      msg: `expiresAt: must be no later than ${endText}, when the key of the caller expires`,
    })
    const listed = (await operator.ask('GET', keys)).json<{ keys: ShownKey[] }>()
    expect(listed.keys.map(({ name }) => name)).toEqual(['absent', 'null', 'sooner'])

    const password = 'a password for ever'
    for (const reply of [
      await operator.ask('POST', usersPath, json({ name: 'other', password })),
      await operator.ask('PATCH', `${usersPath}/robot`, json({ password })),
    ]) {
      expect([reply.status, reply.json()]).toEqual([
        403,
        { msg: 'password: cannot be set with an API key that expires' },
      ])
    }
    expect((await registry.ask('GET', `${usersPath}/other`)).status).toBe(404)
  })
})
