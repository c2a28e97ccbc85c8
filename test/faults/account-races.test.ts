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

async function open(wrap: NonNullable<Wiring['wrap']> = (metadata) => metadata): Promise<WiredRegistry> {
  const registry = await wireRegistry(temporaryFolder(), { wrap })
  opened.push(registry)
  return registry
}

const switchTo = (registry: ApiServer, verb: 'enable' | 'disable') => registry.ask('POST', `${api}/${verb}`)

function codeOf(reply: Reply): string {
  return reply.text === '' ? String(reply.status) : `${reply.status} ${reply.json<{ msg: string }>().msg}`
}
const disabled = '403 the registry is disabled for this account'

/** How many rows the tables of what clients can see have, read from beside the server. */
const rowsOf = ({ dataDir }: ApiServer) =>
  ['blob_links', 'tags', 'manifests', 'uploads'].map((table) => countRows(dataDir, table)).join()

const image = imageOf()
const layer = 'a layer that no manifest names'
const layerPath = `/v2/app/blobs/${digestOf(layer)}`

/** A request that writes. Its rights are checked before the account is disabled, its transaction comes afterwards. */
const changes: readonly (readonly [name: string, method: string, path: string, good: number])[] = [
  ['the deletion of a blob', 'DELETE', layerPath, 202],
  ['the deletion of a tag', 'DELETE', '/v2/app/manifests/latest', 202],
  ['the deletion of a manifest', 'DELETE', `/v2/app/manifests/${image.digest}`, 202],
  ['the push of a manifest', 'PUT', '/v2/app/manifests/new', 201],
  ['a mount', 'POST', `/v2/target/blobs/uploads/?mount=${digestOf(layer)}`, 201],
]

describe.each(changes)('%s whose transaction begins after the account was disabled', (_, method, path, good) => {
  const request = method === 'PUT' ? { body: image.bytes, headers: { 'content-type': ociManifest } } : {}

  /** The switches are done before the transaction of the change begins. */
  async function changeAround(
    switches: readonly ('disable' | 'enable')[],
    wrap: Wiring['wrap'] = (metadata) => metadata,
  ) {
    const gate = new Gate()
    let isArmed = false
    const passOnce = async () => {
      if (!isArmed) return
      isArmed = false
      await gate.pass()
    }
    // A mount looks for the blob first, in another transaction.
    const hold = path.includes('mount=')
      ? (metadata: MetadataStore) => after(metadata, 'blobs', 'listHolders', passOnce)
      : (metadata: MetadataStore) => beforeCall(metadata, 'transaction', passOnce)
    const registry = await open((metadata) => hold(wrap(metadata)))
    await pushBlob(registry, 'app', '{}')
    await pushBlob(registry, 'app', layer)
    expect((await putManifest(registry, 'app', 'latest', image)).status).toBe(201)
    const rows = rowsOf(registry)
    isArmed = true
    const changing = registry.ask(method, path, request)
    await gate.reached
    for (const verb of switches) expect((await switchTo(registry, verb)).status).toBe(200)
    gate.open()
    const changed = await changing
    const isUnchanged = rows === rowsOf(registry)
    await switchTo(registry, 'enable')
    return { registry, changed, isUnchanged }
  }

  test('is refused and changes nothing, and is accepted after enable', async () => {
    const { registry, changed, isUnchanged } = await changeAround(['disable'])

    expect([codeOf(changed), isUnchanged]).toEqual([disabled, true])
    for (const seen of [layerPath, '/v2/app/manifests/latest'])
      expect((await registry.ask('GET', seen)).status).toBe(200)
    expect(await auditStores(registry.dataDir)).toEqual([])
    expect((await registry.ask(method, path, request)).status).toBe(good)
  })

  // Its control is the test above: without the second switch, the change is refused.
  test('is accepted when the account was enabled again before the transaction', async () => {
    const { changed, isUnchanged } = await changeAround(['disable', 'enable'])

    expect([changed.status, isUnchanged]).toEqual([good, false])
  })

  test('control: is done where the transaction does not check the state', async () => {
    const { changed, isUnchanged } = await changeAround(['disable'], ignoringStates)

    expect([changed.status, isUnchanged]).toEqual([good, false])
  })
})

test.each([
  ['GET', '/v2/_catalog'],
  ['POST', '/v2/app/blobs/uploads/'],
])(
  'the first use of an account is refused when the account is disabled while it is created: %s %s',
  async (method, path) => {
    const gate = new Gate()
    const registry = await open((metadata) => before(metadata, 'accounts', 'ensure', gate.pass))
    const using = registry.ask(method, path)
    await gate.reached

    await switchTo(registry, 'disable')
    gate.open()

    expect(codeOf(await using)).toBe(disabled)
    expect(countRows(registry.dataDir, 'uploads')).toBe(0)
  },
)

describe('a blob on its way in', () => {
  const content = 'the whole content of a layer'
  const digest = digestOf(content)

  test.each([
    ['in one request', 'POST', async () => `/v2/app/blobs/uploads/?digest=${digest}`],
    [
      'as the last bytes of a session',
      'PUT',
      async (registry: ApiServer) => `${await startUpload(registry, 'app')}?digest=${digest}`,
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
    for (const [method, path, init] of [
      ['GET', session],
      ['PATCH', session, rest],
      ['PUT', `${session}?digest=${digest}`, rest],
      ['DELETE', session],
    ] as const) {
      expect([method, codeOf(await registry.ask(method, path, init))]).toEqual([method, disabled])
    }

    await switchTo(registry, 'enable')
    expect((await registry.ask('GET', session)).headers.get('range')).toBe('0-9')
    expect((await registry.ask('PATCH', session, rest)).status).toBe(202)
    expect((await registry.ask('PUT', `${session}?digest=${digest}`)).status).toBe(201)
    expect((await registry.ask('GET', `/v2/app/blobs/${digest}`)).text).toBe(content)
  })
})
