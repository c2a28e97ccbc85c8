// A user gets more rights while a request about that user is under way, by a caller who then may no longer manage the user.
// Each test forces one interleaving.
import { afterAll, describe, expect, test } from 'bun:test'
import type { MetadataStore } from '../../../src/ports/metadata-store.ts'
import { identity } from '../../support/api/api-server.ts'
import { json, usersPath } from '../../support/api/managed-users.ts'
import { addPerson } from '../../support/api/people.ts'
import { rolesSetting } from '../../support/api/right-sets.ts'
import { type WiredRegistry, wireRegistry } from '../../support/api/wired-registry.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { after, Gate } from '../../support/clocks/gates.ts'
import { holdBody } from '../../support/clocks/held-body.ts'

const temporaryFolder = useTemporaryFolders('promoted-meanwhile')
const opened: WiredRegistry[] = []

afterAll(async () => {
  for (const registry of opened) await registry.stop()
})

interface World {
  readonly registry: WiredRegistry
  /** The key of an operator without any other right. */
  readonly olga: string
}

async function openWorld(wrap: (metadata: MetadataStore) => MetadataStore = (metadata) => metadata): Promise<World> {
  const settings = { BERTH_IDENTITY__ROLES: rolesSetting }
  const registry = await wireRegistry(temporaryFolder(), { settings, wrap })
  opened.push(registry)
  const olga = await addPerson(registry, { name: 'olga', roles: ['operate'] })
  await addPerson(registry, { name: 'bob', roles: [] })
  return { registry, olga }
}

const bob = `${usersPath}/bob`
const [given, wanted] = ['what the administrator gave', 'what the operator wanted']

async function mayLogIn({ registry }: World, password: string): Promise<boolean> {
  const body = { username: 'bob', password }
  const { status } = await registry.ask('POST', `${identity}/token/auth`, { ...json(body), key: 'none' })
  if (status !== 200 && status !== 401) throw new Error(`a login ended with ${status}`)
  return status === 200
}

async function keysOfBob({ registry }: World): Promise<string[]> {
  const { keys } = (await registry.ask('GET', `${bob}/keys`)).json<{ keys: { name: string }[] }>()
  return keys.map(({ name }) => name)
}

async function promote({ registry }: World): Promise<void> {
  const reply = await registry.ask('PATCH', bob, json({ roles: ['admin'], password: given }))
  if (reply.status !== 200) throw new Error(`the promotion ended with ${reply.status}: ${reply.text}`)
}

const operations = {
  'sets the password': { method: 'PATCH', path: bob, body: { password: wanted }, done: 200 },
  'disables the user': { method: 'PATCH', path: bob, body: { disabled: true }, done: 200 },
  'removes the roles': { method: 'PATCH', path: bob, body: { roles: [] }, done: 200 },
  'creates a key': { method: 'POST', path: `${bob}/keys`, body: { name: 'made' }, done: 201 },
  'creates a key with the rights of the operator': {
    method: 'POST',
    path: `${bob}/keys`,
    body: { name: 'made', rights: ['operate'] },
    done: 201,
  },
} as const

type Operation = (typeof operations)[keyof typeof operations]
const all = Object.entries(operations)

/** The request, with a body that stops half way. */
function askSlowly({ registry, olga: key }: World, { method, path, body: content }: Operation) {
  const { body, reached, letGo } = holdBody(JSON.stringify(content))
  const headers = { 'content-type': 'application/json' }
  return { asking: registry.ask(method, path, { key, headers, body }), reached, letGo }
}

async function expectPromoted(world: World): Promise<void> {
  expect((await world.registry.ask('GET', bob)).json()).toMatchObject({ roles: ['admin'], disabled: false })
  expect(await keysOfBob(world)).toEqual(['test'])
  expect([await mayLogIn(world, given), await mayLogIn(world, wanted)]).toEqual([true, false])
}

describe('a request of an operator that pauses in its body, while the user becomes an administrator', () => {
  test.each(all)('%s: it is refused and changes nothing', async (_, operation) => {
    const world = await openWorld()
    const { asking, reached, letGo } = askSlowly(world, operation)
    await reached

    await promote(world)
    letGo()

    expect((await asking).status).toBe(403)
    await expectPromoted(world)
  })

  test.each(all)('%s: control: it is done if the user is not promoted', async (_, operation) => {
    const world = await openWorld()
    const { asking, reached, letGo } = askSlowly(world, operation)
    await reached
    letGo()

    expect((await asking).status).toBe(operation.done)
  })
})

describe('a request of an operator that was allowed, but has not run, when the user becomes an administrator', () => {
  test.each(all)('%s: it is refused and changes nothing', async (_, operation) => {
    const gate = new Gate()
    let isArmed = false
    const holdOnce = async () => {
      if (!isArmed) return
      isArmed = false
      await gate.pass()
    }
    const world = await openWorld((metadata) => after(metadata, 'users', 'find', holdOnce))
    isArmed = true
    const asking = world.registry.ask(operation.method, operation.path, { key: world.olga, ...json(operation.body) })
    await gate.reached

    await promote(world)
    gate.open()

    expect((await asking).status).toBe(403)
    await expectPromoted(world)
  })
})
