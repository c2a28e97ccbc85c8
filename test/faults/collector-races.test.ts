// The collector against pushes, mounts and heads, step by step: safety.md 3.7. Each test is one interleaving.
import { afterAll, describe, expect, test } from 'bun:test'
import { deleteBlob, describeBlob, mountBlob } from '../../src/registry/blobs.ts'
import { deleteManifest } from '../../src/registry/manifests.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { after, before, crash, Gate } from '../support/clocks/gates.ts'
import {
  collect,
  grow,
  openWorld,
  principalWith,
  pull,
  push,
  scopeOf,
  upload,
  type World,
} from '../support/stores/deed-world.ts'
import { hourMs } from '../support/stores/metadata-rows.ts'
import { auditStores, listFiles } from '../support/stores/store-audit.ts'

const temporaryFolder = useTemporaryFolders('races')
const worlds: World[] = []

afterAll(async () => {
  for (const world of worlds) await world.metadata.close()
})

/** A blob whose lease is over, so that the collector may take it. */
async function openWithOldBlob() {
  const world = await openWorld(temporaryFolder())
  worlds.push(world)
  const scope = await scopeOf(world)
  const digest = await upload(world, scope, 'layer')
  await upload(world, scope, '{}')
  grow(world)
  return { world, scope, digest }
}

/** A collection that has locked a blob and stands before its look. */
async function collectUpTo(world: World, method: 'isLive' | 'bury') {
  const gate = new Gate()
  const collecting = collect({ ...world, metadata: before(world.metadata, 'garbage', method, gate.pass) })
  await gate.reached
  return async () => {
    gate.open()
    await collecting
  }
}

async function sound(world: World): Promise<void> {
  expect(await auditStores(world.dataDir)).toEqual([])
}

describe('I05: HEAD and the collector', () => {
  test.each([
    { part: 0.6, asks: describeBlob, isKept: true },
    { part: 0.4, asks: describeBlob, isKept: false },
    { part: 0.6, asks: pull, isKept: false },
  ])('$asks.name of a lease of which $part are over makes it begin anew: $isKept', async ({ part, asks, isKept }) => {
    const { world, scope, digest } = await openWithOldBlob()
    await describeBlob(world, scope, digest)

    grow(world, part * hourMs)
    await asks(world, scope, digest)
    grow(world, 0.7 * hourMs)
    await collect(world)

    expect(await pull(world, scope, digest)).toBe(isKept ? 'layer' : 'blob-unknown')
  })

  test('HEAD comes first: the blob is kept', async () => {
    const { world, scope, digest } = await openWithOldBlob()

    expect(await describeBlob(world, scope, digest)).toBe(5)
    await collect(world)

    expect(await pull(world, scope, digest)).toBe('layer')
    await sound(world)
  })

  test('HEAD comes between the lock and the end: it waits and is told that the blob is gone', async () => {
    const { world, scope, digest } = await openWithOldBlob()
    const goOn = await collectUpTo(world, 'isLive')

    const asked = describeBlob(world, scope, digest).catch((error) => error.refusal)
    await goOn()

    // Whichever of the two blobs stood at the gate: what HEAD promised is true.
    const told = await asked
    expect(await pull(world, scope, digest)).toBe(told === 5 ? 'layer' : 'blob-unknown')
    await sound(world)
  })

  test('HEAD comes last: the blob is gone', async () => {
    const { world, scope, digest } = await openWithOldBlob()

    await collect(world)

    expect(await describeBlob(world, scope, digest).catch((error) => error.refusal)).toBe('blob-unknown')
    expect(listFiles(world.dataDir)).toEqual([])
  })
})

describe('I06: a mount and the collector', () => {
  const pusher = principalWith('pull', 'push')

  test.each(['before', 'during', 'after'] as const)('mount comes %s: it is a living blob or none', async (moment) => {
    const { world, scope, digest } = await openWithOldBlob()
    const target = await scopeOf(world, 'target')
    const mount = () => mountBlob(world, pusher, target, digest, scope.repository)

    let isMounted: boolean
    if (moment === 'before') {
      isMounted = await mount()
      await collect(world)
    } else if (moment === 'during') {
      const goOn = await collectUpTo(world, 'bury')
      const mounting = mount()
      await goOn()
      isMounted = await mounting
    } else {
      await collect(world)
      isMounted = await mount()
    }

    expect(await pull(world, target, digest)).toBe(isMounted ? 'layer' : 'name-unknown')
    if (moment !== 'during') expect(isMounted).toBe(moment === 'before')
    await sound(world)
  })

  test('the source is deleted at the same time', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { world, scope, digest } = await openWithOldBlob()
      const target = await scopeOf(world, 'target')
      const deeds = [
        () => mountBlob(world, pusher, target, digest, scope.repository),
        () => deleteBlob(world, scope, digest).then(() => undefined),
        () => collect(world).then(() => undefined),
      ]

      const results = await Promise.all(
        deeds.toSorted(() => Math.random() - 0.5).map((deed) => deed().catch(() => undefined)),
      )

      const isMounted = results.includes(true)
      expect(await pull(world, target, digest)).toBe(isMounted ? 'layer' : 'name-unknown')
      await sound(world)
    }
  })
})

describe('I07, I09: the same blob is uploaded while the collector takes it', () => {
  test('before: the upload renews the lease, and the collector keeps the blob', async () => {
    const { world, scope, digest } = await openWithOldBlob()

    await upload(world, scope, 'layer')
    await collect(world)

    expect(await pull(world, scope, digest)).toBe('layer')
    await sound(world)
  })

  test.each(['isLive', 'bury'] as const)(
    'during, before %s: the upload waits, and its bytes are the blob',
    async (step) => {
      const { world, scope, digest } = await openWithOldBlob()
      const goOn = await collectUpTo(world, step)

      const uploading = upload(world, scope, 'layer')
      await goOn()
      await uploading
      await collect(world)

      expect(await pull(world, scope, digest)).toBe('layer')
      await sound(world)
    },
  )

  test('after: the purge of the old bytes, late and twice, does not touch the new ones', async () => {
    const { world, scope, digest } = await openWithOldBlob()
    await collect(world, { quarantineMs: 3_600_000 })
    const trashed = await world.metadata.garbage.takePurgeable(0, 0, 10)

    await upload(world, scope, 'layer')
    await collect(world)
    for (const { storageKey, notes } of trashed) await world.blobs.remove(storageKey, notes)

    expect(trashed).toHaveLength(2)
    expect(await pull(world, scope, digest)).toBe('layer')
    expect(listFiles(world.dataDir)).toHaveLength(1)
    await sound(world)
  })

  test('the collector rolls back: the blob is there, with the old bytes or the new', async () => {
    const { world, scope, digest } = await openWithOldBlob()
    const failing = { ...world, metadata: after(world.metadata, 'garbage', 'bury', crash) }

    await Promise.all([collect(failing).catch(() => undefined), upload(world, scope, 'layer')])

    expect(await pull(world, scope, digest)).toBe('layer')
    await sound(world)
  })
})

describe('I01, I02: a manifest is pushed while the collector looks at its blobs', () => {
  test.each(['isLive', 'bury'] as const)('before %s: the push is refused or complete', async (step) => {
    const { world, scope, digest } = await openWithOldBlob()
    const goOn = await collectUpTo(world, step)

    const pushing = push(world, scope, 'latest', ['layer']).catch((error) => error.refusal)
    await goOn()

    const outcome = await pushing
    await collect(world)
    if (outcome !== 'manifest-blob-unknown') expect(await pull(world, scope, digest)).toBe('layer')
    else expect(await pull(world, scope, digest)).toBe('blob-unknown')
    await sound(world)
  })

  test('a push that was refused succeeds when the blobs are uploaded again', async () => {
    const { world, scope, digest } = await openWithOldBlob()
    await collect(world)
    expect(await push(world, scope, 'latest', ['layer']).catch((error) => error.refusal)).toBe('manifest-blob-unknown')

    for (const text of ['layer', '{}']) await upload(world, scope, text)
    await push(world, scope, 'latest', ['layer'])
    grow(world)
    await collect(world)

    expect(await pull(world, scope, digest)).toBe('layer')
    await sound(world)
  })
})

describe('I13: one manifest is deleted while another is pushed that shares its layers', () => {
  test('the one that stays is complete, whichever comes first', async () => {
    for (const order of [0, 1]) {
      const { world, scope, digest } = await openWithOldBlob()
      const first = await push(world, scope, 'first', ['layer'])
      const deeds = [() => deleteManifest(world, scope, first), () => push(world, scope, 'second', ['layer'])]

      await Promise.all((order === 0 ? deeds : deeds.toReversed()).map((deed) => deed()))
      grow(world)
      await collect(world)

      expect(await pull(world, scope, digest)).toBe('layer')
      await sound(world)
    }
  })
})
