// The use cases while the source of a move accepts no changes. Over HTTP: test/faults/move-stores.test.ts.
import { expect, test } from 'bun:test'
import { RegistryRefusal } from '../../../src/oci/errors.ts'
import { openAccount } from '../../../src/registry/accounts.ts'
import { deleteBlob, mountBlob } from '../../../src/registry/blobs.ts'
import { forecastGarbage, sweepOrphans } from '../../../src/registry/garbage.ts'
import { deleteManifest } from '../../../src/registry/manifests.ts'
import { changeUnlessReadOnly } from '../../../src/registry/read-only.ts'
import { deleteTag } from '../../../src/registry/tags.ts'
import { appendToUpload, describeUpload, finishUpload, startUpload } from '../../../src/registry/uploads.ts'
import { digestOf } from '../../support/basics/generated-bytes.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { noAges, tagChange, tagged } from '../../support/stores/metadata-rows.ts'
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
} from '../../support/stores/use-case-world.ts'

const newFolder = useTemporaryFolders('read-only')
const encode = (text: string) => new TextEncoder().encode(text)

/** The name of the refusal, or the error. */
async function refusalOf(outcome: Promise<unknown>): Promise<string> {
  const error = await errorOf(outcome)
  return error instanceof RegistryRefusal ? error.refusal : String(error)
}

async function openReadOnly() {
  const world = await openWorld(newFolder())
  const scope = await scopeOf(world)
  const mark = async (isReadOnly: boolean) => {
    await world.metadata.transaction(({ marks }) =>
      isReadOnly ? marks.set('read-only', 'because') : marks.remove('read-only'),
    )
    // The reads of one iteration of the event loop share a snapshot.
    await new Promise(setImmediate)
  }
  return { world, scope, owner: { ...scope, subject: 'alice' }, mark }
}

test('every change is refused, also by a use case that is called directly, and reads are answered', async () => {
  const { world, scope, mark } = await openReadOnly()
  const layer = await upload(world, scope, 'layer')
  await upload(world, scope, '{}')
  const digest = await push(world, scope, 'v1', ['layer'])
  await mark(true)

  const other = await scopeOf(world, 'other')
  const changes: Readonly<Record<string, () => Promise<unknown>>> = {
    upload: () => upload(world, scope, 'new'),
    'upload again': () => upload(world, other, 'layer'),
    push: () => push(world, scope, 'v2', ['layer']),
    mount: () => mountBlob(world, principalWith('pull', 'push'), other, layer, undefined),
    'open the account': async () => openAccount(world, 'acme', 'change'),
    other: () => changeUnlessReadOnly(world, async () => 'done'),
    'delete tag': () => deleteTag(world, scope, tagged('v1'), tagChange.actor),
    'delete manifest': () => deleteManifest(world, scope, digest, tagChange.actor),
    'delete blob': () => deleteBlob(world, scope, layer),
  }
  for (const [name, change] of Object.entries(changes))
    expect([name, await refusalOf(change())]).toEqual([name, 'read-only'])

  expect((await openAccount(world, 'acme', 'read')).isReadOnly).toBe(true)
  expect([await pull(world, scope, layer), await pull(world, scope, digestOf('new'))]).toEqual([
    'layer',
    'blob-unknown',
  ])
  expect(await world.metadata.tags.list({ accountId: scope.accountId, id: 1 }, undefined, 9)).toEqual([tagged('v1')])
  await mark(false)
  for (const name of ['upload', 'push', 'mount', 'open the account', 'other', 'delete tag']) await changes[name]?.()
  await world.metadata.close()
})

test('an upload can be continued but not finished, and can be finished when changes are accepted again', async () => {
  const { world, scope, owner, mark } = await openReadOnly()
  const { id } = await startUpload(world, owner, 'free')
  await appendToUpload(world, owner, id, bodyOf(encode('one ')))
  await mark(true)

  await appendToUpload(world, owner, id, bodyOf(encode('two')))
  const digest = digestOf('one two')
  expect(await refusalOf(finishUpload(world, owner, id, digest, bodyOf()))).toBe('read-only')
  expect(await describeUpload(world, owner, id)).toBe('one two'.length)
  expect(await pull(world, scope, digest)).toBe('blob-unknown')

  await mark(false)
  await finishUpload(world, owner, id, digest, bodyOf())
  expect(await pull(world, scope, digest)).toBe('one two')
  await world.metadata.close()
})

test('the collector removes nothing', async () => {
  const { world, scope, owner, mark } = await openReadOnly()
  const digest = await upload(world, scope, 'garbage')
  await startUpload(world, owner, 'free')
  await world.metadata.transaction(({ garbage }) => garbage.trash({ storageKey: freshKey(), notes: undefined }))
  const orphaned = await world.blobs.openWriter(freshKey(), { sizeBytes: 0, notes: undefined })
  await orphaned.complete()
  await orphaned.close()
  grow(world)
  await mark(true)
  const before = await forecastGarbage(world, noAges)
  expect(before).toMatchObject({ blobs: 1, uploads: 1, trashed: 1 })

  const nothing = { uploads: 0, untagged: 0, deleted: 0, blobs: 0, bytes: 0, tagMoves: 0, repositories: 0, purged: 0 }
  expect([await collect(world, noAges), await sweepOrphans(world, 0)]).toEqual([nothing, 0])
  expect(await forecastGarbage(world, noAges)).toEqual(before)
  expect(await pull(world, scope, digest)).toBe('garbage')

  await mark(false)
  expect(await sweepOrphans(world, 0)).toBe(1)
  expect(await collect(world, noAges)).toMatchObject({ uploads: 2, blobs: 1 })
  await world.metadata.close()
})

test('a change during which the store became read-only is not acknowledged', async () => {
  const { world, mark } = await openReadOnly()

  expect(await refusalOf(changeUnlessReadOnly(world, () => mark(true)))).toBe('read-only')
  await world.metadata.close()
})
