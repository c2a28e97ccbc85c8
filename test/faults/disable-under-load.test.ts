// Many push while an account is enabled and disabled: what is told to the operator holds, as seen from beside the server.
import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { digestOf, imageOf, ociManifest } from '../support/api/api-images.ts'
import { api } from '../support/api/api-server.ts'
import { type WiredRegistry, wireRegistry } from '../support/api/wired-registry.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { holdBody } from '../support/clocks/held-body.ts'
import { ignoringStates } from '../support/stores/lying-stores.ts'
import { auditStores } from '../support/stores/store-audit.ts'

const temporaryFolder = useTemporaryFolders('disable-under-load')
const opened: WiredRegistry[] = []

afterAll(async () => {
  for (const registry of opened) await registry.stop()
})

const pushersCount = 8
const flips = 40

/** What of an account can be pulled once it is enabled: a text for each manifest, tag and blob. */
function lookBeside(dataDir: string): Set<string> {
  using database = new Database(join(dataDir, 'metadata.sqlite'), { readwrite: true })
  const rows = database
    .query<{ what: string }, []>(
      `SELECT 'manifest ' || digest AS what FROM manifests
       UNION ALL SELECT 'tag ' || name || ' ' || manifest_id || ' ' || version FROM tags
       UNION ALL SELECT 'blob ' || digest FROM blobs`,
    )
    .all()
  return new Set(rows.map(({ what }) => what))
}

/** The order of things: a request has begun, `disable` has answered. */
class Order {
  #last = 0
  /** When the upload of a blob began. */
  readonly begun = new Map<string, number>()

  now(): number {
    this.#last += 1
    return this.#last
  }
}

interface Tally {
  readonly faults: string[]
  readonly statuses: Map<number, number>
  /** Digests of manifests whose push was answered with 201. */
  readonly acknowledged: string[]
}

/** Uploads a blob, then the manifest that names it, whose body always comes in two halves; again and again. */
async function push(registry: WiredRegistry, name: string, order: Order, tally: Tally, isOver: () => boolean) {
  const note = (status: number) => tally.statuses.set(status, (tally.statuses.get(status) ?? 0) + 1)
  for (let round = 0; !isOver(); round += 1) {
    const config = JSON.stringify({ name, round })
    const [digest, image] = [digestOf(config), imageOf({ config })]
    order.begun.set(`blob ${digest}`, order.now())
    const uploaded = await registry.ask('POST', `/v2/${name}/blobs/uploads/?digest=${digest}`, { body: config })
    note(uploaded.status)
    if (uploaded.status !== 201) {
      await Bun.sleep(1)
      continue
    }
    const { body, letGo } = holdBody(image.bytes)
    setTimeout(letGo, round % 4)
    const headers = { 'content-type': ociManifest }
    const { status } = await registry.ask('PUT', `/v2/${name}/manifests/tag-${round % 3}`, { body, headers })
    note(status)
    if (status === 201) tally.acknowledged.push(image.digest)
  }
}

/** Between the answer to `disable` and the request to `enable`, nothing may appear but blobs that were on their way. */
async function flip(registry: WiredRegistry, order: Order, tally: Tally): Promise<void> {
  const { status } = await registry.ask('POST', `${api}/disable`)
  const answeredAt = order.now()
  const before = lookBeside(registry.dataDir)
  for (let look = 0; look < 3; look += 1) {
    await Bun.sleep(3)
    for (const what of lookBeside(registry.dataDir)) {
      const isOnItsWay = (order.begun.get(what) ?? Number.POSITIVE_INFINITY) < answeredAt
      if (!before.has(what) && !isOnItsWay) tally.faults.push(`${what} appeared`)
    }
  }
  if (status !== 200) tally.faults.push(`disable answered ${status}`)
  await registry.ask('POST', `${api}/enable`)
  await Bun.sleep(8)
}

async function stress(registry: WiredRegistry): Promise<Tally> {
  const order = new Order()
  const tally: Tally = { faults: [], statuses: new Map(), acknowledged: [] }
  let isOver = false
  const pushing = Array.from({ length: pushersCount }, (_, number) =>
    push(registry, `load/app-${number}`, order, tally, () => isOver),
  )
  for (let round = 0; round < flips; round += 1) await flip(registry, order, tally)
  isOver = true
  await Promise.all(pushing)
  return tally
}

test('nothing becomes visible between disable and enable, and what was acknowledged is there at the end', async () => {
  const registry = await wireRegistry(temporaryFolder())
  opened.push(registry)
  await registry.ask('POST', `${api}/enable`)

  const { faults, statuses, acknowledged } = await stress(registry)

  console.log(`disable under load: ${flips} flips, answers ${JSON.stringify(Object.fromEntries(statuses))}`)
  expect(faults).toEqual([])
  expect([...statuses.keys()].toSorted()).toEqual([201, 403])
  const left = lookBeside(registry.dataDir)
  expect(acknowledged.filter((digest) => !left.has(`manifest ${digest}`))).toEqual([])
  expect(await auditStores(registry.dataDir)).toEqual([])
}, 50_000)

test('control: where a push does not look at the state again, manifests and tags are seen to appear', async () => {
  const registry = await wireRegistry(temporaryFolder(), { wrap: ignoringStates })
  opened.push(registry)
  await registry.ask('POST', `${api}/enable`)

  const { faults } = await stress(registry)

  expect(faults.some((fault) => fault.startsWith('manifest '))).toBe(true)
  expect(faults.some((fault) => fault.startsWith('tag '))).toBe(true)
}, 50_000)
