// An account is disabled while somebody pushes to it: decisions.md 4. Each test forces one interleaving.
import { afterAll, describe, expect, test } from 'bun:test'
import { digestOf, imageOf, ociManifest, pushBlob, putManifest, startUpload } from '../support/api/api-images.ts'
import { type ApiServer, api, identity, type Reply } from '../support/api/api-server.ts'
import { type WiredRegistry, type Wiring, wireRegistry } from '../support/api/wired-registry.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { after, before, Gate } from '../support/clocks/gates.ts'
import { holdBody } from '../support/clocks/held-body.ts'
import { setStateElsewhere } from '../support/server/set-account-state.ts'
import { collect, grow, openWorld, scopeOf } from '../support/stores/deed-world.ts'
import { ignoringStates } from '../support/stores/lying-stores.ts'
import { hourMs } from '../support/stores/metadata-rows.ts'
import { auditStores, countRows } from '../support/stores/store-audit.ts'
import { damageMetadata } from '../support/stores/store-damage.ts'

const temporaryFolder = useTemporaryFolders('account-races')
const opened: ApiServer[] = []

afterAll(async () => {
  for (const server of opened) await server.stop()
})

async function open(wiring: Wiring = {}): Promise<WiredRegistry> {
  const registry = await wireRegistry(temporaryFolder(), wiring)
  opened.push(registry)
  return registry
}

const image = imageOf()
const switchTo = (registry: ApiServer, verb: 'enable' | 'disable') => registry.ask('POST', `${api}/${verb}`)
const accountOf = async (server: ApiServer) =>
  (await server.ask('GET', `${identity}/me`)).json<{ account: string }>().account

function codeOf(reply: Reply): string {
  return reply.text === '' ? String(reply.status) : `${reply.status} ${reply.json<{ msg: string }>().msg}`
}
const disabled = '403 the registry is disabled for this account'

/** A push of the image's manifest whose body stops half way. */
function pushSlowly(registry: ApiServer, tag: string) {
  const { body, reached, letGo } = holdBody(image.bytes)
  const headers = { 'content-type': ociManifest }
  return { pushing: registry.ask('PUT', `/v2/app/manifests/${tag}`, { body, headers }), reached, letGo }
}

/** What of manifests and tags the store holds, looked at from beside. */
const visible = ({ dataDir }: ApiServer) => countRows(dataDir, 'manifests') + countRows(dataDir, 'tags')

describe('a manifest on its way in', () => {
  test('is refused when disable has answered before its transaction, and nothing of it is visible', async () => {
    const registry = await open()
    await pushBlob(registry, 'app', '{}')
    const { pushing, reached, letGo } = pushSlowly(registry, 'latest')
    await reached

    expect((await switchTo(registry, 'disable')).status).toBe(200)
    letGo()

    expect(codeOf(await pushing)).toBe(disabled)
    expect(visible(registry)).toBe(0)
    expect(await auditStores(registry.dataDir)).toEqual([])
  })

  test('control: it becomes visible where the transaction does not look at the state', async () => {
    const registry = await open({ wrap: ignoringStates })
    await pushBlob(registry, 'app', '{}')
    const { pushing, reached, letGo } = pushSlowly(registry, 'latest')
    await reached

    await switchTo(registry, 'disable')
    letGo()

    expect((await pushing).status).toBe(201)
    expect(visible(registry)).toBe(2)
  })

  test('is there when its transaction came first: disable answers only after it', async () => {
    const gate = new Gate()
    const registry = await open({ wrap: (metadata) => before(metadata, 'accounts', 'addImages', gate.pass) })
    await pushBlob(registry, 'app', '{}')
    const pushing = putManifest(registry, 'app', 'latest', image)
    await gate.reached

    const order: string[] = []
    const disabling = switchTo(registry, 'disable').then(() => order.push('disabled'))
    gate.open()
    await pushing.then(() => order.push('pushed'))
    await disabling

    expect([(await pushing).status, order]).toEqual([201, ['pushed', 'disabled']])
    expect(visible(registry)).toBe(2)
    expect((await registry.ask('GET', '/v2/app/manifests/latest')).status).toBe(403)
  })

  test('is there when the account was enabled again before its transaction', async () => {
    const registry = await open()
    await pushBlob(registry, 'app', '{}')
    const { pushing, reached, letGo } = pushSlowly(registry, 'latest')
    await reached

    await switchTo(registry, 'disable')
    await switchTo(registry, 'enable')
    letGo()

    expect((await pushing).status).toBe(201)
  })

  test('that was refused is pushed again as it was, once the account is enabled', async () => {
    const registry = await open()
    await pushBlob(registry, 'app', '{}')
    const { pushing, reached, letGo } = pushSlowly(registry, 'latest')
    await reached
    await switchTo(registry, 'disable')
    letGo()
    await pushing

    await switchTo(registry, 'enable')

    expect((await putManifest(registry, 'app', 'latest', image)).status).toBe(201)
    expect((await registry.ask('GET', '/v2/app/manifests/latest')).text).toBe(image.bytes)
  })
})

describe('the first use of an account', () => {
  test.each([
    ['GET', '/v2/_catalog'],
    ['POST', '/v2/app/blobs/uploads/'],
  ])('is refused when the account is disabled while it comes into being: %s %s', async (method, path) => {
    const gate = new Gate()
    const registry = await open({ wrap: (metadata) => before(metadata, 'accounts', 'ensure', gate.pass) })
    const using = registry.ask(method, path)
    await gate.reached

    await switchTo(registry, 'disable')
    gate.open()

    expect(codeOf(await using)).toBe(disabled)
    expect(countRows(registry.dataDir, 'uploads')).toBe(0)
  })
})

describe('a blob on its way in', () => {
  const content = 'the whole content of a layer'
  const digest = digestOf(content)

  test.each([
    ['in one request', 'POST', async () => `/v2/app/blobs/uploads/?digest=${digest}`],
    [
      'as the last bytes of a session',
      'PUT',
      async (registry: ApiServer) => {
        return `${await startUpload(registry, 'app')}?digest=${digest}`
      },
    ],
  ] as const)('%s may finish, and nobody sees it before the account is enabled', async (_, method, pathIn) => {
    const registry = await open()
    const path = await pathIn(registry)
    const { body, reached, letGo } = holdBody(content)
    const uploading = registry.ask(method, path, { body })
    await reached

    await switchTo(registry, 'disable')
    letGo()

    expect((await uploading).status).toBe(201)
    expect((await registry.ask('GET', `/v2/app/blobs/${digest}`)).status).toBe(403)
    await switchTo(registry, 'enable')
    expect((await registry.ask('GET', `/v2/app/blobs/${digest}`)).text).toBe(content)
    expect(await auditStores(registry.dataDir)).toEqual([])
  })

  test('as a chunk may finish; the session rests while the account is disabled, and goes on after it', async () => {
    const registry = await open()
    const session = await startUpload(registry, 'app')
    const { body, reached, letGo } = holdBody(content.slice(0, 10))
    const sending = registry.ask('PATCH', session, { body })
    await reached
    await switchTo(registry, 'disable')
    letGo()
    const rest = { body: content.slice(10), headers: { 'content-range': `10-${content.length - 1}` } }

    expect([(await sending).status, (await sending).headers.get('range')]).toEqual([202, '0-9'])
    const refused = [
      await registry.ask('GET', session),
      await registry.ask('PATCH', session, rest),
      await registry.ask('PUT', `${session}?digest=${digest}`, rest),
      await registry.ask('DELETE', session),
    ]
    expect(refused.map(codeOf)).toEqual([disabled, disabled, disabled, disabled])

    await switchTo(registry, 'enable')
    expect((await registry.ask('GET', session)).headers.get('range')).toBe('0-9')
    expect((await registry.ask('PATCH', session, rest)).status).toBe(202)
    expect((await registry.ask('PUT', `${session}?digest=${digest}`)).status).toBe(201)
    expect((await registry.ask('GET', `/v2/app/blobs/${digest}`)).text).toBe(content)
  })
})

test('a mount is refused when disable has answered before its transaction, and links nothing', async () => {
  const gate = new Gate()
  const registry = await open({ wrap: (metadata) => after(metadata, 'blobs', 'listHolders', gate.pass) })
  const digest = await pushBlob(registry, 'source', 'a layer')
  const mounting = registry.ask('POST', `/v2/target/blobs/uploads/?mount=${digest}`)
  await gate.reached

  await switchTo(registry, 'disable')
  gate.open()

  expect(codeOf(await mounting)).toBe(disabled)
  expect(countRows(registry.dataDir, 'blob_links')).toBe(1)
})

describe('the collector', () => {
  const all = { leaseMs: 0, quarantineMs: 0, uploadIdleMs: 0, uploadMaxMs: 0, uploadDoneMs: 0, holdMs: 0 }

  test('leaves a disabled account alone, and comes to it when it is enabled', async () => {
    const registry = await open()
    await pushBlob(registry, 'app', 'nobody names this')
    await startUpload(registry, 'app')
    await startUpload(registry, 'empty')
    const world = await openWorld(registry.dataDir)
    await world.metadata.repositories.ensure(await scopeOf(world, 'bare', await accountOf(registry)))
    damageMetadata(registry.dataDir, `UPDATE repositories SET created_at = created_at - ${2 * hourMs}`)
    grow(world)
    // Two sessions are open, and the blob's own is remembered.
    const rows = () =>
      ['blobs', 'blob_links', 'uploads', 'repositories'].map((table) => countRows(registry.dataDir, table))
    const before = rows()

    await switchTo(registry, 'disable')
    const nothing = await collect(world, all)
    const kept = rows()
    await switchTo(registry, 'enable')
    const something = await collect(world, all)
    await world.metadata.close()

    expect(nothing).toEqual({ uploads: 0, blobs: 0, bytes: 0, repositories: 0, purged: 0 })
    expect([before, kept]).toEqual([
      [1, 1, 3, 3],
      [1, 1, 3, 3],
    ])
    expect(something).toMatchObject({ uploads: 3, blobs: 1, repositories: 3, purged: 3 })
    expect(rows()).toEqual([0, 0, 0, 0])
  })
})

describe('another process on the same data folder', () => {
  test('disables for the very next request, also for one that stands before its transaction, and enables', async () => {
    const registry = await open()
    await pushBlob(registry, 'app', '{}')
    const account = await accountOf(registry)
    const session = await startUpload(registry, 'app')
    const { pushing, reached, letGo } = pushSlowly(registry, 'held')
    await reached

    await setStateElsewhere(registry.dataDir, account, 'disabled')
    const next = await registry.ask('GET', '/v2/_catalog')
    letGo()

    expect([codeOf(next), codeOf(await pushing)]).toEqual([disabled, disabled])
    expect(visible(registry)).toBe(0)

    await setStateElsewhere(registry.dataDir, account, 'enabled')
    expect((await registry.ask('PATCH', session, { body: 'goes on' })).status).toBe(202)
    expect((await putManifest(registry, 'app', 'held', image)).status).toBe(201)
  })
})
