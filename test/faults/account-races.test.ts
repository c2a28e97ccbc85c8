// An account is disabled while a request that writes to it is under way. Each test forces one interleaving.
// The same on two replicas: test/replicas/push-interleavings.test.ts; under load: postgres-disable.test.ts.
import { afterAll, describe, expect, test } from 'bun:test'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { digestOf, imageOf, ociManifest, pushBlob, putManifest, startUpload } from '../support/api/api-images.ts'
import { type ApiServer, api, type Reply } from '../support/api/api-server.ts'
import { type WiredRegistry, type Wiring, wireRegistry } from '../support/api/wired-registry.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { after, around, before, beforeCall, Gate } from '../support/clocks/gates.ts'
import { holdBody } from '../support/clocks/held-body.ts'
import { auditStores, countRows } from '../support/stores/store-audit.ts'

const temporaryFolder = useTemporaryFolders('account-races')
/** A store that says of every account, within a transaction, that it is enabled. */
const ignoringStates = (metadata: MetadataStore) =>
  around(metadata, 'accounts', 'findLocked', async (call, values) => {
    const found = await call(...values)
    return typeof found === 'object' ? { ...found, state: 'enabled' } : found
  })
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
  ] as const)('%s may finish, and it is not visible before the account is enabled', async (_, method, pathIn) => {
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

const loose = 'a blob that no manifest names'
const deletions = [
  ['a blob', `/v2/app/blobs/${digestOf(loose)}`],
  ['a tag', '/v2/app/manifests/latest'],
  ['a manifest', `/v2/app/manifests/${image.digest}`],
] as const

describe.each(deletions)('the deletion of %s whose rights were checked before the account was disabled', (_, path) => {
  /** The deletion waits before its transaction until `goOn` is called. The account is disabled meanwhile. */
  async function deleteAroundDisable(wrap: Wiring['wrap'] = (metadata) => metadata) {
    const gate = new Gate()
    let isArmed = false
    const passOnce = async () => {
      if (!isArmed) return
      isArmed = false
      await gate.pass()
    }
    const registry = await open({ wrap: (metadata) => beforeCall(wrap(metadata), 'transaction', passOnce) })
    await pushBlob(registry, 'app', '{}')
    await pushBlob(registry, 'app', loose)
    expect((await putManifest(registry, 'app', 'latest', image)).status).toBe(201)
    const before = rowsOf(registry)
    isArmed = true
    const deleting = registry.ask('DELETE', path)
    await gate.reached
    expect((await switchTo(registry, 'disable')).status).toBe(200)
    gate.open()
    const deleted = await deleting
    const after = rowsOf(registry)
    await switchTo(registry, 'enable')
    return { registry, deleted, isUnchanged: before === after }
  }

  const rowsOf = ({ dataDir }: ApiServer) =>
    ['blob_links', 'tags', 'manifests'].map((table) => countRows(dataDir, table)).join()

  test('is refused, and everything is there after enable', async () => {
    const { registry, deleted, isUnchanged } = await deleteAroundDisable()

    expect([codeOf(deleted), isUnchanged]).toEqual([disabled, true])
    for (const [, each] of deletions) expect((await registry.ask('GET', each)).status).toBe(200)
    expect(await auditStores(registry.dataDir)).toEqual([])
    expect((await registry.ask('DELETE', path)).status).toBe(202)
  })

  test('control: is done where the transaction does not look at the state', async () => {
    const { registry, deleted } = await deleteAroundDisable(ignoringStates)

    expect(deleted.status).toBe(202)
    expect((await registry.ask('GET', path)).status).toBe(404)
  })
})
