// The contract of the port `Users` (src/ports/users.ts).
import { describe, expect, test } from 'bun:test'
import type { NewUser, User, Users } from '../../src/ports/users.ts'

const alice: NewUser = {
  name: 'alice',
  passwordHash: '$argon2id$v=19$not-a-real-one',
  roles: ['admin', 'a role, with "signs"'],
  account: 'acme',
  isDisabled: false,
}

async function add(users: Users, rest: Partial<NewUser> = {}): Promise<User> {
  const added = await users.add({ ...alice, ...rest })
  if (added === undefined) throw new Error('there was one of that name already')
  return added
}

const namesOf = (users: readonly User[]) => users.map(({ name }) => name)

export function usersContract(name: string, open: () => Promise<Users>): void {
  describe(`users, ${name}`, () => {
    describe('that are added', () => addedContract(open))
    describe('that are changed', () => changedContract(open))
    describe('whose tokens are to end', () => epochContract(open))
    describe('in a list', () => listContract(open))
  })
}

function addedContract(open: () => Promise<Users>): void {
  test('are found as they were added', async () => {
    const users = await open()

    const added = await add(users)

    expect(added).toEqual({ ...alice, id: added.id, tokenEpoch: 0 })
    expect(await users.find('alice')).toEqual(added)
  })

  test('may be without a password, without a role, and disabled from the start', async () => {
    const users = await open()
    const rest = { passwordHash: undefined, roles: [], isDisabled: true }

    expect(await add(users, rest)).toMatchObject(rest)
    expect(await users.find('alice')).toMatchObject(rest)
  })

  test('are found by no other name, nor by theirs in other letters', async () => {
    const users = await open()
    await add(users)

    for (const other of ['bob', 'Alice', 'alice ', 'alic', 'alice%', "' OR 1=1 --", '']) {
      expect([other, await users.find(other)]).toEqual([other, undefined])
    }
  })

  test('are different users under different names, in one account or two', async () => {
    const users = await open()

    const added = [
      await add(users),
      await add(users, { name: 'bob' }),
      await add(users, { name: 'c', account: 'rival' }),
    ]

    expect(new Set(added.map(({ id }) => id)).size).toBe(3)
  })

  test('are refused under a name that is taken, in another account too, and nothing is changed', async () => {
    const users = await open()
    const known = await add(users)

    expect(await users.add({ ...alice, roles: [], passwordHash: undefined, isDisabled: true })).toBeUndefined()
    expect(await users.add({ ...alice, account: 'rival' })).toBeUndefined()

    expect(await users.find('alice')).toEqual(known)
    expect(await users.list('rival', undefined, 10)).toEqual([])
  })

  test('all at once under one name are one user', async () => {
    const users = await open()

    const added = await Promise.all(['acme', 'rival', 'third'].map((account) => users.add({ ...alice, account })))

    expect(added.filter((user) => user !== undefined)).toEqual([await users.find('alice')] as User[])
  })
}

function changedContract(open: () => Promise<Users>): void {
  const changes = [
    { roles: ['reader'] },
    { roles: [] },
    { isDisabled: true },
    { passwordHash: 'another hash' },
    { passwordHash: 'another hash', roles: ['x'], isDisabled: true },
  ]

  test.each(changes)('to %j keep all that was not named', async (change) => {
    const users = await open()
    const known = await add(users)

    const changed = await users.change(known.id, change)

    expect(changed).toEqual({ ...known, ...change, tokenEpoch: expect.any(Number) })
    expect(await users.find('alice')).toEqual(changed)
  })

  test('by nothing, or by members that are there but not set, stay as they are', async () => {
    const users = await open()
    const known = await add(users)

    expect(await users.change(known.id, {})).toEqual(known)
    expect(await users.change(known.id, { passwordHash: undefined })).toEqual(known)
    expect(await users.find('alice')).toEqual(known)
  })

  test('are enabled again as they were disabled', async () => {
    const users = await open()
    const { id } = await add(users, { isDisabled: true })

    expect((await users.change(id, { isDisabled: false }))?.isDisabled).toBe(false)
  })

  test('change without an effect on other users', async () => {
    const users = await open()
    const [{ id }, bob] = [await add(users), await add(users, { name: 'bob' })]

    await users.change(id, { passwordHash: 'another hash', roles: [], isDisabled: true })

    expect(await users.find('bob')).toEqual(bob)
  })

  test('and are not there are told so', async () => {
    const users = await open()
    await add(users)

    expect(await users.change(999_999, { roles: [] })).toBeUndefined()
  })
}

function epochContract(open: () => Promise<Users>): void {
  test.each([
    { passwordHash: 'another hash' },
    { isDisabled: true },
    { passwordHash: 'another hash', isDisabled: false },
  ])('get another number with %j', async (change) => {
    const users = await open()
    const { id, tokenEpoch } = await add(users)

    expect((await users.change(id, change))?.tokenEpoch).toBeGreaterThan(tokenEpoch)
    expect((await users.find('alice'))?.tokenEpoch).toBeGreaterThan(tokenEpoch)
  })

  test.each([{}, { roles: ['reader'] }, { isDisabled: false }, { passwordHash: undefined }])(
    'and only then: not with %j',
    async (change) => {
      const users = await open()
      const { id, tokenEpoch } = await add(users)

      expect((await users.change(id, change))?.tokenEpoch).toBe(tokenEpoch)
    },
  )

  test('never get a number again that they had', async () => {
    const users = await open()
    const { id, tokenEpoch } = await add(users)
    const seen = [tokenEpoch]

    for (const isDisabled of [true, false, true, false]) {
      seen.push((await users.change(id, { isDisabled, passwordHash: `hash ${seen.length}` }))?.tokenEpoch ?? -1)
    }

    expect(new Set(seen).size).toBe(5)
  })
}

function listContract(open: () => Promise<Users>): void {
  // In byte order: capitals before small letters, whatever a dictionary says.
  const inOrder = ['A', 'B', 'Z', '_', 'a', 'a-b', 'aa', 'b', 'z']

  async function openFull(): Promise<Users> {
    const users = await open()
    for (const name of inOrder.toReversed()) await add(users, { name })
    await add(users, { name: 'ab', account: 'rival' })
    return users
  }

  test('are those of one account, in byte order', async () => {
    const users = await openFull()

    expect(namesOf(await users.list('acme', undefined, 100))).toEqual(inOrder)
    expect(namesOf(await users.list('rival', undefined, 100))).toEqual(['ab'])
    expect(await users.list('nobody', undefined, 100)).toEqual([])
  })

  test('are those of all accounts where none is named', async () => {
    const users = await openFull()

    expect(namesOf(await users.list(undefined, undefined, 100))).toEqual([...inOrder, 'ab'].toSorted())
  })

  test.each([[undefined], ['acme']] as const)('of %p come page by page, each once', async (account) => {
    const users = await openFull()
    const all = namesOf(await users.list(account, undefined, 100))

    const paged: string[] = []
    for (let page = await users.list(account, undefined, 2); page.length > 0 && paged.length <= all.length; ) {
      expect(page.length).toBeLessThanOrEqual(2)
      paged.push(...namesOf(page))
      page = await users.list(account, paged.at(-1), 2)
    }

    expect(paged).toEqual(all)
  })

  test('begin after a name, even if no user has it', async () => {
    const users = await openFull()

    expect(namesOf(await users.list('acme', 'a', 2))).toEqual(['a-b', 'aa'])
    expect(namesOf(await users.list('acme', 'a-', 1))).toEqual(['a-b'])
    expect(namesOf(await users.list('acme', 'zz', 5))).toEqual([])
  })

  test('are told as they are found', async () => {
    const users = await openFull()

    expect(await users.list('acme', 'B', 1)).toEqual([await users.find('Z')] as User[])
  })
}
