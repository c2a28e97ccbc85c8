// An account is disabled while somebody deletes in it: who has passed the door, but not begun, deletes nothing.
import { afterAll, describe, expect, test } from 'bun:test'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { digestOf, imageOf, pushBlob, putManifest } from '../support/api/api-images.ts'
import { api } from '../support/api/api-server.ts'
import { type WiredRegistry, wireRegistry } from '../support/api/wired-registry.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { Gate } from '../support/clocks/gates.ts'
import { ignoringStates } from '../support/stores/lying-stores.ts'
import { auditStores, countRows } from '../support/stores/store-audit.ts'

const temporaryFolder = useTemporaryFolders('deletion-races')
const opened: WiredRegistry[] = []

afterAll(async () => {
  for (const registry of opened) await registry.stop()
})

const image = imageOf()
const loose = 'a blob that no manifest names'

const deletions = [
  ['a blob', `/v2/app/blobs/${digestOf(loose)}`],
  ['a tag', '/v2/app/manifests/latest'],
  ['a manifest', `/v2/app/manifests/${image.digest}`],
] as const

/** Holds the first transaction that begins after `arm`, before anything of it has happened. */
class HeldTransaction {
  readonly gate = new Gate()
  #isArmed = false

  arm(): void {
    this.#isArmed = true
  }

  readonly wrap = (metadata: MetadataStore): MetadataStore => {
    const transaction: MetadataStore['transaction'] = async (work) => {
      if (this.#isArmed) {
        this.#isArmed = false
        await this.gate.pass()
      }
      return metadata.transaction(work)
    }
    return new Proxy(metadata, {
      get(target, key) {
        const own: unknown = key === 'transaction' ? transaction : Reflect.get(target, key)
        return typeof own === 'function' ? own.bind(target) : own
      },
    })
  }
}

async function open(wrap: (metadata: MetadataStore) => MetadataStore): Promise<WiredRegistry> {
  const registry = await wireRegistry(temporaryFolder(), { wrap })
  opened.push(registry)
  await pushBlob(registry, 'app', '{}')
  await pushBlob(registry, 'app', loose)
  const { status } = await putManifest(registry, 'app', 'latest', image)
  if (status !== 201) throw new Error(`the manifest was not pushed, but ${status}`)
  return registry
}

async function switchTo(registry: WiredRegistry, verb: 'enable' | 'disable'): Promise<void> {
  const { status } = await registry.ask('POST', `${api}/${verb}`)
  if (status !== 200) throw new Error(`${verb} ended with ${status}`)
}

const rows = ({ dataDir }: WiredRegistry) =>
  ['blob_links', 'tags', 'manifests'].map((table) => countRows(dataDir, table))

async function statusesOfAll(registry: WiredRegistry): Promise<number[]> {
  const replies = []
  for (const [, path] of deletions) replies.push(await registry.ask('GET', path))
  return replies.map(({ status }) => status)
}

describe.each(deletions)('the deletion of %s that has passed the door', (_, path) => {
  test('is refused when disable has answered before its transaction, and everything is there after enable', async () => {
    const held = new HeldTransaction()
    const registry = await open(held.wrap)
    const before = rows(registry)
    held.arm()
    const deleting = registry.ask('DELETE', path)
    await held.gate.reached

    await switchTo(registry, 'disable')
    held.gate.open()
    const { status, text } = await deleting

    expect([status, text.includes('the registry is disabled for this account')]).toEqual([403, true])
    expect(rows(registry)).toEqual(before)
    await switchTo(registry, 'enable')
    expect(await statusesOfAll(registry)).toEqual([200, 200, 200])
    expect(await auditStores(registry.dataDir)).toEqual([])
    expect((await registry.ask('DELETE', path)).status).toBe(202)
  })

  test('is done when the account was enabled again before its transaction', async () => {
    const held = new HeldTransaction()
    const registry = await open(held.wrap)
    held.arm()
    const deleting = registry.ask('DELETE', path)
    await held.gate.reached

    await switchTo(registry, 'disable')
    await switchTo(registry, 'enable')
    held.gate.open()

    expect((await deleting).status).toBe(202)
    expect((await registry.ask('GET', path)).status).toBe(404)
  })

  test('control: is done where the transaction does not look at the state', async () => {
    const held = new HeldTransaction()
    const registry = await open((metadata) => held.wrap(ignoringStates(metadata)))
    held.arm()
    const deleting = registry.ask('DELETE', path)
    await held.gate.reached

    await switchTo(registry, 'disable')
    held.gate.open()

    expect((await deleting).status).toBe(202)
    await switchTo(registry, 'enable')
    expect((await registry.ask('GET', path)).status).toBe(404)
  })
})
