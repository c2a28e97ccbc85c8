// Deny by default: every set of rights, by role and by key, against every route of the table.
import { afterAll, describe, expect, test } from 'bun:test'
import type { Right } from '../../../src/ports/identity.ts'
import { startUpload } from '../../support/api/api-images.ts'
import { api } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { rightSets, rolesSetting } from '../../support/api/right-sets.ts'
import {
  askFor,
  emptyStock,
  exampleOf,
  fillStock,
  type Operation,
  operations,
  type Stock,
} from '../../support/api/route-examples.ts'
import { askedBy, type WiredRegistry, wireRegistry } from '../../support/api/wired-registry.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('rights')
const registry = await wireRegistry(temporaryFolder(), { settings: { BERTH_IDENTITY__ROLES: rolesSetting } })
afterAll(() => registry.stop())

const guarded = operations.filter(({ route }) => route.access !== 'anyone')
const denied = 'requested access to the resource is denied'
let made = 0

const rightOf = ({ route }: Operation): Right | undefined => (route.access === 'anyone' ? undefined : route.right)

/** A repository of its own with everything in it, and a user without rights to be managed. */
async function freshStock(): Promise<Stock> {
  made += 1
  const user = `managed-${made}`
  await addPerson(registry, { name: user, roles: [] })
  return fillStock(registry, `rights/app-${made}`, { user, apiKeyName: 'test' })
}

/** What does not change anything can be asked for again and again. */
const lasting = await freshStock()
const stockFor = ({ method }: Operation) => (method === 'GET' || method === 'HEAD' ? lasting : freshStock())

async function checkAllowed(caller: WiredRegistry, operation: Operation): Promise<void> {
  const stock = await stockFor(operation)
  // An upload session belongs to the caller who opened it.
  const isPush = rightOf(operation) === 'push'
  const uploadId = isPush ? (await startUpload(caller, stock.repository)).split('/').at(-1) : undefined
  const reply = await askFor(caller, operation, uploadId === undefined ? stock : { ...stock, uploadId })

  expect([operation.title, reply.status]).toEqual([operation.title, exampleOf(operation.route).status])
  if (operation.route.operationId === 'disableService') await registry.ask('POST', `${api}/enable`)
}

/** Denied in the same words whether there is such a thing or not. */
async function checkDenied(caller: WiredRegistry, operation: Operation): Promise<void> {
  const there = await askFor(caller, operation, lasting)
  const nowhere = await askFor(caller, operation, emptyStock('rights/nowhere', 'nobody-there'))

  expect([operation.title, there.status, nowhere.status]).toEqual([operation.title, 403, 403])
  expect(nowhere.text).toBe(there.text)
  if (operation.method === 'HEAD') return expect(there.text).toBe('')
  const error = { code: 'DENIED', message: denied, detail: { right: rightOf(operation) } }
  expect(there.json()).toEqual(operation.mount === '' ? { msg: denied } : { errors: [error], msg: denied })
}

async function checkAll(caller: WiredRegistry, rights: readonly Right[]): Promise<void> {
  for (const operation of guarded) {
    const right = rightOf(operation)
    if (right === undefined || rights.includes(right)) await checkAllowed(caller, operation)
    else await checkDenied(caller, operation)
  }
}

test('the table has what it is made for', () => {
  expect(rightSets).toHaveLength(16)
  expect(guarded.length).toBeGreaterThan(50)
  expect(new Set(guarded.map(rightOf))).toEqual(new Set([undefined, 'pull', 'push', 'delete', 'operate']))
})

describe.each(rightSets.map((set) => [set.name, set.rights] as const))('a caller with %s', (name, rights) => {
  test('by a role, or by a key of a user who may do more, can do that on every route, and no more', async () => {
    const byRole = await addPerson(registry, { name: `by-role-${name}`, roles: [name] })
    const byKey = await addPerson(registry, { name: `by-key-${name}`, roles: ['admin'], limits: { rights } })
    for (const key of [byRole, byKey]) await checkAll(askedBy(registry, key), rights)
  }, 60_000)
})

describe('a role that the configuration does not know', () => {
  test.each([
    [[]],
    [['unknown']],
    [['Admin']],
    [['ADMIN', 'Pull', 'pull+push', 'operate ']],
    [['admin ']],
    [['__proto__', 'constructor']],
  ])('gives nothing: %j', async (roles) => {
    made += 1
    const key = await addPerson(registry, { name: `unknown-${made}`, roles })

    await checkAll(askedBy(registry, key), [])
  })

  test('is no longer known when the map is another: the usual roles give nothing then', async () => {
    const own = await wireRegistry(temporaryFolder(), { settings: { BERTH_IDENTITY__ROLES: 'captain=operate' } })
    const admin = await own.ask('GET', '/v2/_catalog')
    const reader = await addPerson(own, { name: 'reads', roles: ['reader', 'writer', 'admin'] })
    const replies = [admin, await own.ask('GET', '/v2/_catalog', { key: reader })]
    await own.stop()

    expect(replies.map(({ status }) => status)).toEqual([403, 403])
  })
})

test.each<readonly [string, readonly string[], readonly Right[] | undefined, readonly Right[]]>([
  ['several roles give what any of them gives', ['pull', 'delete'], undefined, ['pull', 'delete']],
  ['an unknown role takes nothing from a known one', ['unknown', 'pull-push'], undefined, ['pull', 'push']],
  ["a key's rights beyond its user's give nothing", ['pull-push'], ['push', 'delete', 'operate'], ['push']],
])('%s', async (_, roles, rights, expected) => {
  made += 1
  const key = await addPerson(registry, { name: `several-${made}`, roles, ...(rights && { limits: { rights } }) })

  await checkAll(askedBy(registry, key), expected)
})

test('nothing was changed by what was denied', async () => {
  const replies = await Promise.all(
    [`manifests/v1`, `blobs/${lasting.spareDigest}`, `blobs/uploads/${lasting.uploadId}`].map((rest) =>
      registry.ask('GET', `/v2/${lasting.repository}/${rest}`),
    ),
  )
  const keys = await registry.ask('GET', `/api/2021-02-21/users/${lasting.user}/keys`)
  const nowhere = await registry.ask('GET', '/v2/rights/nowhere/tags/list')

  expect(replies.map(({ status }) => status)).toEqual([200, 200, 204])
  expect(keys.json<{ keys: { name: string }[] }>().keys.map(({ name }) => name)).toEqual(['test'])
  expect(nowhere.status).toBe(404)
})
