// Managing users and keys over HTTP: no operator can give or gain more rights than the operator has, or reach another account.
import { afterAll, describe, expect, test } from 'bun:test'
import { allRights } from '../../../src/identity/rights.ts'
import { parseRepositoryPattern } from '../../../src/oci/repository-pattern.ts'
import type { Right } from '../../../src/ports/identity.ts'
import { identity } from '../../support/api/api-server.ts'
import { json, password, usersPath as users } from '../../support/api/managed-users.ts'
import { addPerson } from '../../support/api/people.ts'
import { type RightSet, rightSets, rolesSetting } from '../../support/api/right-sets.ts'
import { askedBy, type WiredRegistry, wireRegistry } from '../../support/api/wired-registry.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('management')
const registry = await wireRegistry(temporaryFolder(), { settings: { BERTH_IDENTITY__ROLES: rolesSetting } })
afterAll(() => registry.stop())

const operators = rightSets.filter(({ rights }) => rights.includes('operate'))
let made = 0

function freshName(): string {
  made += 1
  return `user-${made}`
}

/** A user with all rights of the set, without the administrator's. */
async function operatorWith({ name }: RightSet): Promise<WiredRegistry> {
  return askedBy(registry, await addPerson(registry, { name: `${freshName()}-${name}`, roles: [name] }))
}

async function userWith(role: string): Promise<string> {
  const name = freshName()
  await addPerson(registry, { name, roles: [role] })
  return name
}

const pathOf = async (role: string) => `/${await userWith(role)}`
const rolesOf = async (name: string) =>
  (await registry.ask('GET', `${users}/${name}`)).json<{ roles: readonly string[] }>().roles
async function keysOf(name: string): Promise<string[]> {
  const { keys } = (await registry.ask('GET', `${users}/${name}/keys`)).json<{ keys: { name: string }[] }>()
  return keys.map((key) => key.name)
}
const rightsOfKey = async (key: string) =>
  (await registry.ask('GET', `${identity}/me`, { key })).json<{ rights: readonly string[] }>().rights

/** [what, method, path and body for a user with the role] */
const operations: readonly (readonly [string, string, (role: string) => Promise<string>, (role: string) => unknown])[] =
  [
    ['make a user of that role', 'POST', async () => '', (role) => ({ name: freshName(), roles: [role] })],
    ['give a user that role', 'PATCH', () => pathOf('nothing'), (role) => ({ roles: ['nothing', role] })],
    ['take that role from a user', 'PATCH', pathOf, () => ({ roles: [] })],
    ['set the password of a user of that role', 'PATCH', pathOf, () => ({ password })],
    ['disable a user of that role', 'PATCH', pathOf, () => ({ disabled: true })],
    [
      'revoke a key of a user of that role',
      'DELETE',
      async (role) => `${await pathOf(role)}/keys/test`,
      () => undefined,
    ],
  ]

const isWithin = (rights: readonly Right[], own: readonly Right[]) => rights.every((right) => own.includes(right))

describe.each(operators.map((set) => [set.name, set] as const))('an operator with %s', (_, own) => {
  test.each(operations)('can %s only with all the rights of the role', async (_what, method, path, body) => {
    const operator = await operatorWith(own)
    for (const { name, rights } of rightSets) {
      const { status } = await operator.ask(method, users + (await path(name)), json(body(name)))

      expect([name, status < 300 ? 'done' : status]).toEqual([name, isWithin(rights, own.rights) ? 'done' : 403])
    }
  })

  test('creates keys only for users without other rights, and no key ever has more rights than the operator', async () => {
    const operator = await operatorWith(own)
    for (const { name, rights } of rightSets) {
      const user = await userWith(name)
      const reply = await operator.ask('POST', `${users}/${user}/keys`, json({ name: 'made' }))
      expect([name, reply.status]).toEqual([name, isWithin(rights, own.rights) ? 201 : 403])
      if (reply.status !== 201) continue
      // An operator promotes the user: the key gets more rights, but not more than its creator has.
      await registry.ask('PATCH', `${users}/${user}`, json({ roles: ['admin'] }))

      expect((await rightsOfKey(reply.json<{ key: string }>().key)).toSorted()).toEqual(own.rights.toSorted())
    }
  })
})

describe('a role that the map does not know', () => {
  const alien = 'superuser'
  const nobodyWithout = operators.filter(({ rights }) => rights.length < allRights.length)

  test.each(nobodyWithout.map((set) => [set.name, set] as const))(
    'is not given, nor touched, by an operator with %s',
    async (_, own) => {
      const operator = await operatorWith(own)
      const [fresh, user, holder] = [freshName(), await userWith('nothing'), await userWith(alien)]
      const replies = [
        await operator.ask('POST', users, json({ name: fresh, roles: [alien] })),
        await operator.ask('PATCH', `${users}/${user}`, json({ roles: ['nothing', alien] })),
        await operator.ask('PATCH', `${users}/${holder}`, json({ password })),
        await operator.ask('PATCH', `${users}/${holder}`, json({ roles: [] })),
        await operator.ask('POST', `${users}/${holder}/keys`, json({ name: 'made', rights: ['operate'] })),
        await operator.ask('DELETE', `${users}/${holder}/keys/test`),
      ]

      expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 403))
      expect((await registry.ask('GET', `${users}/${fresh}`)).status).toBe(404)
      expect([await rolesOf(user), await rolesOf(holder)]).toEqual([['nothing'], [alien]])
      expect(await keysOf(holder)).toEqual(['test'])
    },
  )

  test('can be given and removed by an operator with all rights', async () => {
    const [administrator, fresh] = [await operatorWith({ name: 'admin', rights: allRights }), freshName()]
    const made = await administrator.ask('POST', users, json({ name: fresh, roles: [alien] }))
    const changed = await administrator.ask('PATCH', `${users}/${fresh}`, json({ roles: ['nothing', alien] }))
    const keyed = await administrator.ask('POST', `${users}/${fresh}/keys`, json({ name: 'made' }))

    expect([made.status, changed.status, keyed.status]).toEqual([201, 200, 201])
    expect(await rolesOf(fresh)).toEqual(['nothing', alien])
    expect(await rightsOfKey(keyed.json<{ key: string }>().key)).toEqual([])
  })
})

test('a key with a right that the operator does not have is refused, also for a user without rights', async () => {
  const operator = await operatorWith({ name: 'operate', rights: ['operate'] })
  const user = await userWith('nothing')
  const reply = await operator.ask('POST', `${users}/${user}/keys`, json({ name: 'made', rights: ['pull'] }))

  expect([reply.status, reply.json()]).toEqual([403, { msg: 'rights: must be among yours: operate' }])
  expect(await keysOf(user)).toEqual(['test'])
})

describe('a key of a user with more rights than the operator', () => {
  test('cannot be made, however few rights it were to have', async () => {
    const operator = await operatorWith({ name: 'operate', rights: ['operate'] })
    const boss = await userWith('admin')
    const bodies = [{ name: 'made' }, { name: 'made', rights: ['operate'] }, { name: 'made', rights: [] }]

    for (const body of bodies) {
      expect((await operator.ask('POST', `${users}/${boss}/keys`, json(body))).status).toBe(403)
      expect(await keysOf(boss)).toEqual(['test'])
    }
    const own = await registry.ask('POST', `${users}/${boss}/keys`, json({ name: 'made', rights: ['operate'] }))
    expect([own.status, await keysOf(boss)]).toEqual([201, ['made', 'test']])
  })

  test('is refused with the same message, whether the user has too many keys, the name is taken, or neither', async () => {
    const settings = { BERTH_IDENTITY__ROLES: rolesSetting, BERTH_LIMITS__KEYS_PER_USER: '2' }
    const narrow = await wireRegistry(temporaryFolder(), { settings })
    const olga = await addPerson(narrow, { name: 'olga', roles: ['operate'] })
    await addPerson(narrow, { name: 'boss', roles: ['admin'] })
    const ask = (name: string, key?: string) =>
      narrow.ask('POST', `${users}/boss/keys`, { ...json({ name, rights: ['operate'] }), ...(key && { key }) })

    const before = [await ask('test', olga), await ask('one', olga)]
    expect((await ask('two')).status).toBe(201)
    const after = [await ask('three', olga), await ask('two', olga)]
    const [full, taken] = [await ask('three'), await ask('two')]
    await narrow.stop()

    expect(before.concat(after).map(({ status }) => status)).toEqual([403, 403, 403, 403])
    expect(new Set(before.concat(after).map(({ text }) => text)).size).toBe(1)
    expect([full.status, taken.status, full.text === taken.text]).toEqual([409, 409, false])
  })
})

test('a refused request changes no user, no role and no key, nor the roles of the operator that sends it', async () => {
  const name = freshName()
  const operator = askedBy(registry, await addPerson(registry, { name, roles: ['operate'] }))
  const [boss, fresh] = [await userWith('admin'), freshName()]
  for (const [method, path, body] of [
    ['POST', users, { name: fresh, roles: ['admin'] }],
    ['PATCH', `${users}/${boss}`, { roles: [], disabled: true, password }],
    ['POST', `${users}/${boss}/keys`, { name: 'stolen', rights: ['pull', 'push'] }],
    ['DELETE', `${users}/${boss}/keys/test`, undefined],
    ['PATCH', `${users}/${name}`, { roles: ['operate', 'admin'] }],
  ] as const) {
    expect([path, (await operator.ask(method, path, json(body))).status]).toEqual([path, 403])
  }

  const shown = (await registry.ask('GET', `${users}/${boss}`)).json()
  expect(shown).toMatchObject({ roles: ['admin'], disabled: false, hasPassword: false })
  expect((await registry.ask('GET', `${users}/${fresh}`)).status).toBe(404)
  expect([await keysOf(boss), await rolesOf(name)]).toEqual([['test'], ['operate']])
})

describe("an administrator's limited key", () => {
  test('for some rights creates no user with more', async () => {
    const key = await addPerson(registry, {
      name: 'boss-key',
      roles: ['admin'],
      limits: { rights: ['operate', 'pull'] },
    })
    const ask = (roles: readonly string[]) =>
      registry.ask('POST', users, { key, ...json({ name: freshName(), roles }) })

    expect([(await ask(['pull'])).status, (await ask(['push'])).status, (await ask(['admin'])).status]).toEqual([
      201, 403, 403,
    ])
  })

  test('for some rights creates keys with those rights, and none for its own user, who has more', async () => {
    const key = await addPerson(registry, { name: 'boss-key-two', roles: ['admin'], limits: { rights: ['operate'] } })
    const other = await userWith('operate')
    const ask = (user: string) => registry.ask('POST', `${users}/${user}/keys`, { key, ...json({ name: 'more' }) })
    const [own, made] = [await ask('boss-key-two'), await ask(other)]

    expect([own.status, made.status]).toEqual([403, 201])
    expect(await keysOf('boss-key-two')).toEqual(['test'])
    await registry.ask('PATCH', `${users}/${other}`, json({ roles: ['admin'] }))
    expect(await rightsOfKey(made.json<{ key: string }>().key)).toEqual(['operate'])
  })

  test('for some repositories cannot manage users', async () => {
    const pattern = parseRepositoryPattern('*')
    const limits = pattern === undefined ? {} : { repositories: [pattern] }
    const key = await addPerson(registry, { name: 'boss-key-three', roles: ['admin'], limits })
    const replies = [
      await registry.ask('GET', users, { key }),
      await registry.ask('POST', users, { key, ...json({ name: freshName(), roles: [] }) }),
      await registry.ask('POST', `${users}/boss-key-three/keys`, { key, ...json({ name: 'more' }) }),
    ]

    expect(replies.map(({ status }) => status)).toEqual([403, 403, 403])
  })
})

describe('the operators of two accounts', () => {
  const addOtherOperator = () =>
    addPerson(registry, { name: freshName(), roles: ['admin'], account: `account-${freshName()}` })

  test('see only their own users', async () => {
    const key = await addOtherOperator()
    const { users: seen } = (await registry.ask('GET', users, { key })).json<{ users: { name: string }[] }>()

    expect(seen).toHaveLength(1)
  })

  test.each([
    ['GET', '', undefined],
    ['PATCH', '', { disabled: true }],
    ['PATCH', '', { password }],
    ['PATCH', '', { roles: ['admin'] }],
    ['GET', '/keys', undefined],
    ['POST', '/keys', { name: 'made' }],
    ['DELETE', '/keys/test', undefined],
  ])("%s %s of the other account's user is answered as for an unknown user: %j", async (method, rest, body) => {
    const key = await addOtherOperator()
    const theirs = await userWith('nothing')
    const question = { key, ...(body === undefined ? {} : json(body)) }
    const [known, unknown] = [
      await registry.ask(method, `${users}/${theirs}${rest}`, question),
      await registry.ask(method, `${users}/nobody${rest}`, question),
    ]

    expect([known.status, known.text]).toEqual([404, '{"msg":"no such user"}'])
    expect([unknown.status, unknown.text]).toEqual([known.status, known.text])
    expect((await registry.ask('GET', `${users}/${theirs}`)).json()).toMatchObject({
      roles: ['nothing'],
      disabled: false,
    })
    const { keys } = (await registry.ask('GET', `${users}/${theirs}/keys`)).json<{ keys: unknown[] }>()
    expect(keys).toHaveLength(1)
  })

  test('a new user is in the account of the operator, even if the request names another', async () => {
    const key = await addOtherOperator()
    const name = freshName()
    const alien = await registry.ask('POST', users, { key, ...json({ name, roles: [], account: 'another' }) })
    const made = await registry.ask('POST', users, { key, ...json({ name, roles: [] }) })

    expect([alien.status, made.status]).toEqual([400, 201])
    expect((await registry.ask('GET', `${users}/${name}`)).status).toBe(404)
  })
})
