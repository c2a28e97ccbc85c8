import { describe, expect, test } from 'bun:test'
import { isPassword } from '../../../src/identity/passwords.ts'
import { defaultRoles } from '../../../src/identity/rights.ts'
import {
  addUser,
  changeUser,
  checkMayManage,
  getUser,
  parsePassword,
  parseRoles,
  parseUserName,
} from '../../../src/identity/users.ts'
import { RegistryRefusal } from '../../../src/oci/errors.ts'
import type { Right } from '../../../src/ports/identity.ts'
import { catchRefusal, errorOf, refusalOf } from '../../support/basics/outcomes.ts'
import { MemoryUsers, storeOf } from '../../support/identity/memory-users.ts'

const ann = { name: parseUserName('ann'), account: 'acme', roles: ['writer'], password: undefined }

async function refusalBy(promise: Promise<unknown>): Promise<string> {
  const error = await errorOf(promise)
  return error instanceof RegistryRefusal ? error.refusal : String(error)
}

describe('a new user', () => {
  test('has what was said, and a password that is kept as its hash alone', async () => {
    const users = new MemoryUsers()
    const added = await addUser({ metadata: storeOf(users) }, { ...ann, password: 'a password of ann' })

    expect(added).toMatchObject({ name: 'ann', account: 'acme', roles: ['writer'], isDisabled: false })
    expect(await isPassword('a password of ann', added.passwordHash)).toBe(true)
    expect(JSON.stringify(users.users)).not.toContain('a password of ann')
  })

  test('need not have a password', async () => {
    expect((await addUser({ metadata: storeOf(new MemoryUsers()) }, ann)).passwordHash).toBeUndefined()
  })

  test('must have a name of his own', async () => {
    const users = new MemoryUsers()
    await addUser({ metadata: storeOf(users) }, ann)

    expect(await refusalBy(addUser({ metadata: storeOf(users) }, { ...ann, account: 'rival' }))).toBe('user-exists')
    expect(users.users).toHaveLength(1)
  })
})

describe('a user who is looked for', () => {
  test('is found, in his own account alone', async () => {
    const users = new MemoryUsers()
    await addUser({ metadata: storeOf(users) }, ann)

    expect((await getUser({ users }, 'ann')).name).toBe('ann')
    expect((await getUser({ users }, 'ann', 'acme')).name).toBe('ann')
    expect(await refusalBy(getUser({ users }, 'ann', 'rival'))).toBe('user-unknown')
  })

  test('of another account and one who is not there are told in the same words', async () => {
    const users = new MemoryUsers()
    await addUser({ metadata: storeOf(users) }, ann)
    const tell = (error: unknown, name: string) =>
      error instanceof RegistryRefusal ? JSON.stringify([error.message, error.details]).replace(name, '') : error

    expect(tell(await errorOf(getUser({ users }, 'ann', 'rival')), 'ann')).toEqual(
      tell(await errorOf(getUser({ users }, 'bob', 'rival')), 'bob'),
    )
  })
})

describe('a user who is changed', () => {
  test('keeps what was not named', async () => {
    const users = new MemoryUsers()
    const known = await addUser({ metadata: storeOf(users) }, { ...ann, password: 'a password of ann' })

    expect(
      await changeUser({ metadata: storeOf(users), roles: defaultRoles }, known.name, { roles: ['reader'] }),
    ).toEqual({
      ...known,
      roles: ['reader'],
    })
    expect(await changeUser({ metadata: storeOf(users), roles: defaultRoles }, known.name, {})).toEqual({
      ...known,
      roles: ['reader'],
    })
  })

  test('gets a password that is kept as its hash alone, and loses his tokens', async () => {
    const users = new MemoryUsers()
    const known = await addUser({ metadata: storeOf(users) }, ann)
    const changed = await changeUser({ metadata: storeOf(users), roles: defaultRoles }, known.name, {
      password: 'a new password',
    })

    expect(await isPassword('a new password', changed.passwordHash)).toBe(true)
    expect(changed.tokenEpoch).toBe(known.tokenEpoch + 1)
  })

  test('and is gone meanwhile is told so', async () => {
    const needs = { metadata: storeOf(new MemoryUsers()), roles: defaultRoles }
    expect(await refusalBy(changeUser(needs, 'nobody', { roles: [] }))).toBe('user-unknown')
  })
})

test('a user is looked at again under the lock, before anything of him is changed', async () => {
  const users = new MemoryUsers()
  await addUser({ metadata: storeOf(users) }, ann)
  const seen: string[] = []
  const refuse = () => {
    throw new RegistryRefusal('denied')
  }

  expect(
    await refusalBy(changeUser({ metadata: storeOf(users), roles: defaultRoles }, 'ann', { isDisabled: true }, refuse)),
  ).toBe('denied')
  expect((await users.find('ann'))?.isDisabled).toBe(false)
  await changeUser({ metadata: storeOf(users), roles: defaultRoles }, 'ann', { isDisabled: true }, ({ name }) =>
    seen.push(name),
  )
  expect(seen).toEqual(['ann'])
})

describe('managing others', () => {
  const may = (own: Right[], roles: string[]) =>
    refusalOf(() => checkMayManage(new Set(own), roles, defaultRoles)) ?? 'yes'

  test.each<[Right[], string[], string]>([
    [['pull', 'push', 'delete', 'operate'], ['admin'], 'yes'],
    [['pull', 'push', 'delete', 'operate'], ['admin', 'writer', 'unknown'], 'yes'],
    [['pull', 'push', 'operate'], ['writer'], 'denied'],
    [['pull', 'push', 'operate'], ['reader', 'admin'], 'denied'],
    [['pull', 'operate'], ['reader'], 'yes'],
    [['operate'], ['reader'], 'denied'],
    [['operate'], [], 'yes'],
    // It may mean something to another service, or tomorrow.
    [['operate'], ['unknown'], 'denied'],
    [[], ['reader'], 'denied'],
  ])('with the rights %j over the roles %j: %s', (own, roles, expected) => {
    expect(may(own, roles)).toBe(expected)
  })

  test('is refused with the rights that are missing', () => {
    expect(catchRefusal(() => checkMayManage(new Set(['pull']), ['writer'], defaultRoles))?.details).toEqual([
      { rights: ['push', 'delete'] },
    ])
  })
})

describe('what can be', () => {
  test.each(['a', 'ann', 'apikeys', 'ann.example@host+1_x-2', '0', 'x'.repeat(128)])('a name: %p', (name) => {
    expect(String(parseUserName(name))).toBe(name)
  })

  test.each([
    '',
    ' ann',
    'ann ',
    '-ann',
    '@ann',
    'an/n',
    'an:n',
    'ann\n',
    'änn',
    'x'.repeat(129),
    '../x',
    'a%20b',
    'apikey',
    'bearer',
    'ApiKey',
    'BEARER',
  ])('no name: %j', (name) => {
    expect(refusalOf(() => parseUserName(name))).toBe('identity-invalid')
  })

  test('roles: each once, in their order, 32 at most', () => {
    const many = Array.from({ length: 32 }, (_, index) => `role-${index}`)
    expect(parseRoles([])).toEqual([])
    expect(parseRoles(['b', 'a', 'b', 'registry:pull'])).toEqual(['b', 'a', 'registry:pull'])
    expect(parseRoles(many)).toEqual(many)
    expect(refusalOf(() => parseRoles([...many, 'one-more']))).toBe('identity-invalid')
  })

  test.each(['', ' ', '-a', 'a b', 'a,b', 'a\n', 'ä', 'x'.repeat(65)])('no role: %j', (role) => {
    expect(refusalOf(() => parseRoles(['reader', role]))).toBe('identity-invalid')
  })

  test('a password: of 12 to 1024 characters, whatever they are', () => {
    for (const good of ['x'.repeat(12), 'x'.repeat(1_024), ' '.repeat(12), '\0'.repeat(12), 'ünïcödé-letters']) {
      expect(parsePassword(good)).toBe(good)
    }
    for (const bad of ['', 'x'.repeat(11), 'x'.repeat(1_025)]) {
      expect(refusalOf(() => parsePassword(bad))).toBe('identity-invalid')
    }
  })
})
