// The contract of users and their API keys (src/ports/users.ts, src/ports/api-keys.ts). A generated walk compares the store
// with the naive one in memory, which stands for it in other tests.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseUserName } from '../../src/identity/names.ts'
import { defaultRoles } from '../../src/identity/rights.ts'
import { addUser, changeUser } from '../../src/identity/users.ts'
import { RegistryRefusal } from '../../src/oci/errors.ts'
import type { ApiKey, ApiKeys } from '../../src/ports/api-keys.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import type { User, Users } from '../../src/ports/users.ts'
import { errorOf, outcomeOf } from '../support/basics/outcomes.ts'
import { MemoryApiKeys, MemoryUsers } from '../support/identity/memory-users.ts'
import { patterned } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

interface Tables {
  readonly users: Users
  readonly apiKeys: ApiKeys
}

// In byte order, capitals come before small letters. Some differ only in ways that a database may ignore.
const names = ["' OR 1=1 --", 'Alice', 'B', '_', 'a-b', 'aa', 'alic%', 'alice', 'alice '] as const
const accounts = ['acme', 'rival'] as const
const missingId = 999_999

const name = fc.constantFrom(...names)
const roles = fc.subarray(['admin', 'reader', 'a role, with "signs"'])
const passwordHash = fc.constantFrom(undefined, 'one hash', 'another hash')
const keyName = fc.constantFrom('Laptop', 'laptop', 'robot')
const step = fc.oneof(
  fc.record({
    act: fc.constant('add' as const),
    user: fc.record({ name, passwordHash, roles, account: fc.constantFrom(...accounts), isDisabled: fc.boolean() }),
  }),
  fc.record({
    act: fc.constant('change' as const),
    name,
    change: fc.record({ passwordHash, roles, isDisabled: fc.boolean() }, { requiredKeys: [] }),
  }),
  fc.record({
    act: fc.constant('add a key' as const),
    name,
    key: fc.record({
      name: keyName,
      expiresAt: fc.constantFrom(undefined, 1, 2_000_000_000_000),
      rights: fc.constantFrom(undefined, [], ['pull'] as const, ['pull', 'push'] as const),
      repositories: fc.constantFrom(undefined, [], [patterned('team/*'), patterned('one/app')]),
    }),
  }),
  fc.record({ act: fc.constantFrom('revoke' as const, 'use' as const), name, keyName }),
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

const hashOf = (at: number) => `hash of step ${at}`

/** Does the step, and gives all that the store tells about it, without ids. */
async function apply({ users, apiKeys }: Tables, one: Step, at: number): Promise<unknown> {
  if (one.act === 'add') return withoutId(await users.add(one.user))
  const userId = (await users.find(one.name))?.id ?? missingId
  switch (one.act) {
    case 'change':
      return withoutId(await users.change(userId, one.change))
    case 'add a key':
      return apiKeys.add({ userId, secretHash: hashOf(at), ...one.key }).catch(() => 'refused')
    case 'revoke':
      return apiKeys.remove(userId, one.keyName)
    case 'use': {
      const used = (await apiKeys.list(userId)).filter((key) => key.name === one.keyName)
      return apiKeys.recordUses([missingId, ...used.map(({ id }) => id)])
    }
  }
}

function withoutId(user: User | undefined) {
  return user && { ...user, id: undefined }
}

function comparable({ lastUsedAt, ...key }: ApiKey) {
  return { ...key, id: undefined, createdAt: undefined, isUsed: lastUsedAt !== undefined }
}

/** All that the store tells after so many steps. */
async function look({ users, apiKeys }: Tables, steps: number) {
  const found = await Promise.all([...names, 'nobody', 'ALICE', 'alic', ''].map((one) => users.find(one)))
  const ids = found.flatMap((user) => user?.id ?? [])
  const pages: unknown[] = []
  for (const account of [undefined, ...accounts, 'nobody']) {
    pages.push(await users.count(account ?? 'acme'))
    for (const after of [undefined, 'a', 'a-', ...names, 'zz']) {
      pages.push([account, after, (await users.list(account, after, 2)).map(withoutId)])
    }
    pages.push((await users.list(account, undefined, 100)).map(withoutId))
  }
  const keys = await Promise.all([...ids, missingId].map(async (id) => (await apiKeys.list(id)).map(comparable)))
  const byHash: unknown[] = []
  for (let at = 0; at <= steps; at += 1) {
    const one = await apiKeys.find(hashOf(at))
    byHash.push(one && { key: comparable(one.key), user: withoutId(one.user) })
  }
  expect(new Set(ids).size).toBe(ids.length)
  expect(await apiKeys.find('hash of %')).toBeUndefined()
  return { found: found.map(withoutId), pages, keys, byHash, isUsed: await apiKeys.hasAnyBeenUsed() }
}

function openMemory() {
  const users = new MemoryUsers()
  return { users, apiKeys: new MemoryApiKeys(users) }
}

async function walk(open: () => Promise<Tables>, numRuns: number): Promise<void> {
  const property = fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 40 }), async (steps) => {
    const [store, model] = [await open(), openMemory()]
    for (const [at, one] of steps.entries()) {
      expect([at, one, await apply(store, one, at)]).toEqual([at, one, await apply(model, one, at)])
    }
    expect(await look(store, steps.length)).toEqual(await look(model, steps.length))
  })
  await fc.assert(property, { numRuns, endOnFailure: true })
}

const alice = { name: 'alice', passwordHash: undefined, roles: ['writer'], account: 'acme', isDisabled: false }
const unlimited = { expiresAt: undefined, rights: undefined, repositories: undefined }

export function usersContract(open: OpenMetadataStore): void {
  test('and their keys are stored, changed, listed and found as the model says', () => walk(open, 10))

  test('and keys of one name that are added at once are one', async () => {
    const { users, apiKeys } = await open()
    const added = await Promise.all(['acme', 'rival', 'third'].map((account) => users.add({ ...alice, account })))
    const [user] = added.filter((one) => one !== undefined)
    expect([added.filter((one) => one !== undefined).length, user]).toEqual([1, await users.find('alice')])

    const add = (n: number) =>
      apiKeys.add({ userId: user?.id ?? missingId, name: 'laptop', secretHash: `hash ${n}`, ...unlimited })
    expect((await Promise.all([1, 2, 3].map(add))).filter((isNew) => isNew)).toEqual([true])
    expect((await apiKeys.list(user?.id ?? missingId)).length).toBe(1)
  })

  test('have keys whose hash no other key has, and that is never told', async () => {
    const { users, apiKeys } = await open()
    const userId = (await users.add(alice))?.id ?? missingId
    const secretHash = 'the-hash-itself'
    const add = (name: string) => apiKeys.add({ userId, name, secretHash, ...unlimited })

    // Two servers that start together with the same preset key.
    expect((await Promise.all([1, 2, 3, 4].map(() => add('laptop')))).filter((isNew) => isNew)).toEqual([true])
    expect([await add('other'), (await apiKeys.list(userId)).length]).toEqual([false, 1])
    await errorOf(apiKeys.add({ userId: missingId, name: 'robot', secretHash: 'of nobody', ...unlimited }))
    const told = [await apiKeys.find(secretHash), await apiKeys.list(userId)]
    expect(Bun.inspect(told, { depth: 9 })).not.toContain(secretHash)
  })

  manyOperators(open)
}

function manyOperators(open: OpenMetadataStore): void {
  const add = (metadata: MetadataStore, user: string, given: readonly string[], account: string, max?: number) =>
    addUser({ metadata }, { name: parseUserName(user), account, roles: given, password: undefined }, max)
  const toRefusal = (error: unknown) => (error instanceof RegistryRefusal ? error.refusal : String(error))

  test('who operate, and take this right from each other at once, do not both succeed', async () => {
    const metadata = await open()
    await add(metadata, 'oldest', ['reader'], 'acme')
    for (const user of ['one', 'two']) await add(metadata, user, ['admin'], 'acme')
    await add(metadata, 'other', ['admin'], 'rival')
    let other: Promise<unknown> = Promise.resolve()

    await metadata.transaction(async ({ users }) => {
      await users.lockAccount('acme')
      other = changeUser({ metadata, roles: defaultRoles }, 'two', { isDisabled: true }).catch(toRefusal)
      // Long enough for a change that does not wait.
      for (let turn = 0; turn < 20; turn += 1) await users.find('one').then(() => Bun.sleep(5))
      await users.change((await users.findLocked('one'))?.id ?? missingId, { roles: ['writer'] })
    })

    expect(await other).toBe('last-operator')
    expect(await metadata.users.find('two')).toMatchObject({ roles: ['admin'], isDisabled: false })
  })

  test('that are added at once are no more than the account may have', async () => {
    const metadata = await open()
    await add(metadata, 'first', ['admin'], 'acme')
    await add(metadata, 'other', ['admin'], 'rival')

    const adding = Array.from({ length: 12 }, (_, at) => add(metadata, `user-${at}`, [], 'acme', 5).catch(toRefusal))
    const refused = (await Promise.all(adding)).filter((outcome) => outcome === 'too-many-users')

    expect([refused.length, await metadata.users.count('acme')]).toEqual([8, 5])
  })
}

/** Stores with one fault, which the walk must find. */
const faults: Readonly<Record<string, (tables: ReturnType<typeof openMemory>) => Partial<Users & ApiKeys>>> = {
  'leaves the tokens of a changed user valid': ({ users }) => ({
    change: async (id, change) => {
      const known = users.users.find((one) => one.id === id)
      const changed = await MemoryUsers.prototype.change.call(users, id, change)
      return changed && known && Object.assign(changed, { tokenEpoch: known.tokenEpoch })
    },
  }),
  'begins a page with the last user of the page before': ({ users }) => ({
    list: ((account: never, after: string | undefined, limit: number) =>
      MemoryUsers.prototype.list.call(users, account, after?.slice(0, -1), limit)) as never,
  }),
  'forgets that a key is limited to nothing': ({ apiKeys }) => ({
    add: ((key: { rights: readonly unknown[] | undefined }) =>
      MemoryApiKeys.prototype.add.call(apiKeys, {
        ...key,
        rights: key.rights?.length === 0 ? undefined : key.rights,
      } as never)) as never,
  }),
}

export function usersControls(): void {
  test.each(Object.entries(faults))('the walk finds a store that %s (control)', async (_, spoil) => {
    const openSpoiled = async () => {
      const tables = openMemory()
      const { add, ...ofUsers } = spoil(tables)
      Object.assign(tables.users, ofUsers)
      if (add !== undefined) Object.assign(tables.apiKeys, { add })
      return tables
    }
    expect(await outcomeOf(walk(openSpoiled, 100))).toBe('refused')
  })
}
