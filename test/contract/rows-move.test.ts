// Copying all rows of one metadata store to another, between all engines, and what prevents it.
import { describe, expect, test } from 'bun:test'
import { dirname } from 'node:path'
import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { copiedTables } from '../../src/adapters/metadata-sql/store-move/copied-tables.ts'
import { readPages } from '../../src/adapters/metadata-sql/store-move/copy-rows.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import { type Engine, useEngines } from '../support/stores/both-engines.ts'
import { addCopies, dumpRows, fillRegistry } from '../support/stores/full-registry.ts'
import { addBlob, addManifest, openShelf } from '../support/stores/metadata-rows.ts'
import { damageMetadata } from '../support/stores/store-damage.ts'
import { freshKey } from '../support/stores/stored-objects.ts'

const engines = useEngines('rows-move')

/** A store, and a way to open its database again past the port. */
async function openAt(engine: Engine) {
  const open = await engine.place()
  return { metadata: await SqlMetadataStore.open(open()), look: open }
}

const changed = (id: string) => ({ id, keepsBlobStore: false })
const kept = (id: string) => ({ id, keepsBlobStore: true })

async function trashOf(database: Database): Promise<readonly string[]> {
  return (await database.all<{ storage_key: string }>('SELECT storage_key FROM trash ORDER BY storage_key', [])).map(
    (row) => row.storage_key,
  )
}

async function marksOf(database: Database) {
  const rows = await database.all<{ name: string; value: string }>('SELECT name, value FROM marks ORDER BY name', [])
  return rows.map(({ name, value }) => `${name}: ${value}`)
}

async function moveAndCompare(from: Engine, to: Engine): Promise<void> {
  const source = await openAt(from)
  const target = await openAt(to)
  await fillRegistry(source.metadata)
  const copies = await addCopies(source.metadata, target.metadata)
  const before = await dumpRows(source.look(), (key) => copies.get(key) ?? 'not copied')
  await target.metadata.transaction(({ marks }) => marks.set('move-from', 'somewhere'))

  const counts = await target.metadata.takeRowsOf(source.metadata, changed('move 1'))

  const after = await dumpRows(target.look())
  expect(after).toEqual(before)
  // With SQLite, no event waits for its position.
  const empty = Object.keys(after).filter((table) => after[table]?.length === 0)
  expect(empty).toEqual(from === engines.sqlite ? ['event_queue'] : [])
  const byTable = Object.fromEntries(Object.entries(after).map(([table, rows]) => [table, rows.length]))
  expect(counts).toEqual(byTable)
  // The mark `move-from` stays until the move is confirmed at the source.
  expect(await marksOf(target.look())).toEqual(['move-from: somewhere', 'moved-from: move 1', 'usage: blobs 0'])
  expect(await target.metadata.copiedObjects().measure()).toEqual({ blobs: 0, bytes: 0 })
  expect(await trashOf(target.look())).toEqual([])
  expect((await target.look().all('SELECT 1 AS found FROM uploads', [])).length).toBe(0)
  await addNewRows(target.metadata)
}

/** New rows get ids after the copied ones. */
async function addNewRows(metadata: SqlMetadataStore): Promise<void> {
  const shelf = await openShelf(metadata, 'new account', 'new/app')
  const blob = await addBlob(shelf, 'new layer')
  expect((await addManifest(shelf, 'new image', { blobs: [blob], tag: 'new' })).isNew).toBe(true)
  const user = await metadata.users.add({
    name: 'new',
    passwordHash: undefined,
    roles: [],
    account: 'new account',
    isDisabled: false,
  })
  const limits = { expiresAt: undefined, rights: undefined, repositories: undefined }
  expect(await metadata.apiKeys.add({ userId: user?.id ?? 0, name: 'new', secretHash: 'new', ...limits })).toBe(true)
  const known = await metadata.apiKeys.find('hash of ci')
  expect(known).toMatchObject({ key: { rights: ['pull'], repositories: ['team/*'] }, user: { name: 'ann' } })
}

describe('a page of rows', () => {
  test('has at least one row, however long it is', async () => {
    const { metadata, look } = await openAt(engines.sqlite)
    const shelf = await openShelf(metadata)
    for (const text of ['one', 'two', 'three'])
      await addManifest(shelf, text, { more: { sizeBytes: 17 * 1024 * 1024 } })
    const table = copiedTables.find(({ name }) => name === 'manifests')
    if (table === undefined) throw new Error('manifests are not copied')

    const pages = await Array.fromAsync(readPages(look(), table))

    expect(pages.map((rows) => rows.length)).toEqual([1, 1, 1])
  })
})

describe('all rows', () => {
  test('are copied from SQLite to SQLite', () => moveAndCompare(engines.sqlite, engines.sqlite))

  for (const [from, to] of [
    [engines.sqlite, engines.postgres],
    [engines.postgres, engines.sqlite],
    [engines.postgres, engines.postgres],
  ] as const) {
    testNeeding(postgres, `are copied from ${from.name} to ${to.name}`, () => moveAndCompare(from, to))
  }

  testNeeding(postgres, 'are the same after a move there and back', async () => {
    const [first, there, back] = [
      await openAt(engines.sqlite),
      await openAt(engines.postgres),
      await openAt(engines.sqlite),
    ]
    await fillRegistry(first.metadata, 2)
    await there.metadata.takeRowsOf(first.metadata, kept('there'))
    await back.metadata.takeRowsOf(there.metadata, kept('back'))

    expect(await dumpRows(back.look())).toEqual(await dumpRows(first.look()))
  })

  engines.each('are copied in pages of many short rows or a few long ones', async (engine) => {
    const source = await openAt(engines.sqlite)
    const target = await openAt(engine)
    const shelf = await openShelf(source.metadata)
    await source.metadata.transaction(async (tables) => {
      for (let at = 0; at < 1_234; at += 1)
        await tables.repositories.ensure({ ...shelf.scope, repository: `r${at}` as never })
    })
    const long = Array.from({ length: 7 }, (_, at) => `${at} ${'x'.repeat(3_500_000)}`)
    for (const text of long) await addManifest(shelf, text)

    const counts = await target.metadata.takeRowsOf(source.metadata, kept('many'))

    expect(counts).toMatchObject({ repositories: 1_235, manifests: long.length })
    expect(await dumpRows(target.look())).toEqual(await dumpRows(source.look()))
  })

  engines.each('are those of one snapshot, whatever is written meanwhile', async (engine) => {
    const source = await openAt(engine)
    const target = await openAt(engines.sqlite)
    await fillRegistry(source.metadata, 1)
    const before = await dumpRows(source.look())
    const writer = await SqlMetadataStore.open(source.look())
    let written = 0

    await target.metadata.takeRowsOf(source.metadata, {
      ...kept('moment'),
      onRows: async () => {
        written += 1
        // Limited, because rows that were visible would cause more pages, which would cause more rows.
        if (written < 100) await writer.accounts.ensure(`late ${written}`)
      },
    })

    expect(written).toBeGreaterThan(5)
    expect(await dumpRows(target.look())).toEqual(before)
    expect(await writer.accounts.find('late 1')).toBeDefined()
  })

  engines.each('bring the trash and the unfinished uploads along if the blob store is kept', async (engine) => {
    const source = await openAt(engines.sqlite)
    const target = await openAt(engine)
    const { trashed, unfinished } = await fillRegistry(source.metadata, 1)

    await target.metadata.takeRowsOf(source.metadata, kept('same blobs'))

    expect(await trashOf(target.look())).toEqual([trashed, unfinished].toSorted())
  })

  engines.each('of damaged blobs are no longer damaged if their bytes were copied', async (engine) => {
    const source = await openAt(engine)
    await fillRegistry(source.metadata, 1)
    await source.look().run('UPDATE blobs SET damaged_at = 1 WHERE content IS NULL', [])
    const damaged = async (keeps: boolean) => {
      const target = await openAt(engine)
      if (!keeps) await addCopies(source.metadata, target.metadata)
      await target.metadata.takeRowsOf(source.metadata, (keeps ? kept : changed)('move'))
      const marks = await target
        .look()
        .all<{ damaged_at: number | null }>('SELECT DISTINCT damaged_at FROM blobs WHERE content IS NULL', [])
      return marks.map((row) => row.damaged_at)
    }

    expect([await damaged(true), await damaged(false)]).toEqual([[1], [null]])
  })

  engines.each('put copies whose blobs were collected meanwhile into the trash', async (engine) => {
    const source = await openAt(engines.sqlite)
    const target = await openAt(engine)
    const gone = freshKey()
    await target.metadata
      .copiedObjects()
      .add({ sourceKey: freshKey(), storageKey: gone, digest: `sha256:${'0'.repeat(64)}` as never, sizeBytes: 1 }, [])

    await target.metadata.takeRowsOf(source.metadata, changed('gone'))

    expect(await trashOf(target.look())).toEqual([gone])
  })
})

describe('nothing is copied, and the target is unchanged,', () => {
  async function refused(
    engine: Engine,
    spoil: (source: SqlMetadataStore, target: SqlMetadataStore, behind: Database) => Promise<unknown>,
  ) {
    const source = await openAt(engines.sqlite)
    const target = await openAt(engine)
    await fillRegistry(source.metadata, 2)
    await addCopies(source.metadata, target.metadata)
    await spoil(source.metadata, target.metadata, source.look())
    const [rows, marks] = [await dumpRows(target.look()), await marksOf(target.look())]
    const copied = await target.metadata.copiedObjects().measure()

    const fault = await errorOf(target.metadata.takeRowsOf(source.metadata, changed('no')))

    expect(await dumpRows(target.look())).toEqual(rows)
    expect(await marksOf(target.look())).toEqual(marks)
    expect(await target.metadata.copiedObjects().measure()).toEqual(copied)
    return String(fault)
  }

  type Spoil = Parameters<typeof refused>[1]
  const refusals: Readonly<Record<string, readonly [Spoil, RegExp]>> = {
    'if the target has rows': [
      (_, target) => target.accounts.ensure('mine'),
      /the target is not empty: it has accounts/,
    ],
    'if the bytes of a blob have not been copied': [
      async (source) => addBlob(await openShelf(source), 'late'),
      /have not been copied/,
    ],
    'if a manifest does not have its digest': [
      (_, __, behind) => behind.run("UPDATE manifests SET payload = x'00' WHERE id = 3", []),
      /the manifest sha256:[0-9a-f]{64} is damaged/,
    ],
    'if a row names a row that does not exist': [
      async (_, __, behind) => {
        const place = await behind.first<{ file: string }>('PRAGMA database_list', [])
        damageMetadata(dirname(place?.file ?? ''), 'DELETE FROM repositories WHERE id = 1')
      },
      /foreign key/i,
    ],
  }

  for (const [words, [spoil, reason]] of Object.entries(refusals)) {
    engines.each(words, async (engine) => expect(await refused(engine, spoil)).toMatch(reason))
  }
})
