// The use cases while the source of a move accepts no changes.
import { describe, expect, test } from 'bun:test'
import { RegistryRefusal } from '../../../src/oci/errors.ts'
import { openAccount } from '../../../src/registry/accounts.ts'
import { deleteBlob, mountBlob } from '../../../src/registry/blobs.ts'
import { forecastGarbage, sweepOrphans } from '../../../src/registry/garbage.ts'
import { deleteManifest } from '../../../src/registry/manifests.ts'
import { changeUnlessReadOnly, isReadOnly } from '../../../src/registry/read-only.ts'
import { deleteTag } from '../../../src/registry/tags.ts'
import { appendToUpload, describeUpload, finishUpload, startUpload } from '../../../src/registry/uploads.ts'
import { digestOf } from '../../support/basics/generated-bytes.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { noAges, tagged } from '../../support/stores/metadata-rows.ts'
import { freshKey } from '../../support/stores/stored-objects.ts'
import {
  bodyOf,
  collect,
  grow,
  openWorld,
  principalWith,
  pull,
  push,
  scopeOf,
  upload,
  type World,
} from '../../support/stores/use-case-world.ts'

const newFolder = useTemporaryFolders('read-only')
const encode = (text: string) => new TextEncoder().encode(text)

/** The name of the refusal, or the error. */
async function refusalOf(outcome: Promise<unknown>): Promise<string> {
  const error = await errorOf(outcome)
  return error instanceof RegistryRefusal ? error.refusal : String(error)
}

async function forbid({ metadata }: World): Promise<void> {
  await metadata.transaction(({ marks }) => marks.set('read-only', 'because'))
  // The reads of one iteration of the event loop share a snapshot.
  await new Promise(setImmediate)
}

async function permit({ metadata }: World): Promise<void> {
  await metadata.transaction(({ marks }) => marks.remove('read-only'))
  await new Promise(setImmediate)
}

describe('while the store is read-only', () => {
  test('every change is refused, also by a use case that is entered directly, and reads are answered', async () => {
    const world = await openWorld(newFolder())
    const scope = await scopeOf(world)
    const layer = await upload(world, scope, 'layer')
    await upload(world, scope, '{}')
    const digest = await push(world, scope, 'v1', ['layer'])
    await forbid(world)

    const other = await scopeOf(world, 'other')
    const changes: Readonly<Record<string, () => Promise<unknown>>> = {
      push: () => push(world, scope, 'v2', ['layer']),
      upload: () => upload(world, scope, 'new'),
      'upload again': () => upload(world, other, 'layer'),
      mount: () => mountBlob(world, principalWith('pull', 'push'), other, layer, undefined),
      'delete manifest': () => deleteManifest(world, scope, digest),
      'delete tag': () => deleteTag(world, scope, tagged('v1')),
      'delete blob': () => deleteBlob(world, scope, layer),
      enter: () => openAccount(world, 'acme', 'change'),
      other: () => changeUnlessReadOnly(world, async () => 'done'),
    }
    for (const [name, change] of Object.entries(changes))
      expect([name, await refusalOf(change())]).toEqual([name, 'read-only'])

    expect((await openAccount(world, 'acme', 'read')).isReadOnly).toBe(true)
    expect(await pull(world, scope, layer)).toBe('layer')
    expect(await pull(world, scope, digestOf('new'))).toBe('blob-unknown')
    expect(await world.metadata.tags.list({ accountId: scope.accountId, id: 1 }, undefined, 9)).toEqual([tagged('v1')])
    await permit(world)
    for (const name of ['upload', 'push', 'mount', 'enter', 'other']) await changes[name]?.()
    await world.metadata.close()
  })

  test('an upload can be continued but not finished, and can be finished when changes are taken again', async () => {
    const world = await openWorld(newFolder())
    const scope = await scopeOf(world)
    const owner = { ...scope, subject: 'alice' }
    const { id } = await startUpload(world, owner, 'free')
    await appendToUpload(world, owner, id, bodyOf(encode('one ')))
    await forbid(world)

    await appendToUpload(world, owner, id, bodyOf(encode('two')))
    const digest = digestOf('one two')
    expect(await refusalOf(finishUpload(world, owner, id, digest, bodyOf()))).toBe('read-only')
    expect(await describeUpload(world, owner, id)).toBe('one two'.length)
    expect(await pull(world, scope, digest)).toBe('blob-unknown')

    await permit(world)
    await finishUpload(world, owner, id, digest, bodyOf())
    expect(await pull(world, scope, digest)).toBe('one two')
    await world.metadata.close()
  })

  test('the collector removes nothing', async () => {
    const world = await openWorld(newFolder())
    const scope = await scopeOf(world)
    const digest = await upload(world, scope, 'garbage')
    await startUpload(world, { ...scope, subject: 'alice' }, 'free')
    await world.metadata.transaction(({ garbage }) => garbage.trash({ storageKey: freshKey(), notes: undefined }))
    const stray = await world.blobs.openWriter(freshKey(), { sizeBytes: 0, notes: undefined })
    await stray.complete()
    await stray.close()
    grow(world)
    await forbid(world)
    const before = await forecastGarbage(world, noAges)
    expect(before).toMatchObject({ blobs: 1, uploads: 1, trashed: 1 })

    const nothing = { uploads: 0, blobs: 0, bytes: 0, repositories: 0, purged: 0 }
    expect(await collect(world, noAges)).toEqual(nothing)
    expect(await sweepOrphans(world, 0)).toBe(0)
    expect(await forecastGarbage(world, noAges)).toEqual(before)
    expect(await pull(world, scope, digest)).toBe('garbage')

    await permit(world)
    expect(await sweepOrphans(world, 0)).toBe(1)
    expect(await collect(world, noAges)).toMatchObject({ uploads: 2, blobs: 1 })
    await world.metadata.close()
  })

  test('a change that was made while the mark was put is not acknowledged', async () => {
    const world = await openWorld(newFolder())

    const outcome = refusalOf(
      changeUnlessReadOnly(world, async () => {
        await forbid(world)
        return 'done'
      }),
    )

    expect([await outcome, await isReadOnly(world)]).toEqual(['read-only', true])
    await world.metadata.close()
  })
})
