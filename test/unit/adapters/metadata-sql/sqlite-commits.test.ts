import { Database as Sqlite } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { SqliteDatabase } from '../../../../src/adapters/metadata-sql/sqlite-database.ts'
import { SqliteLogFile } from '../../../../src/adapters/metadata-sql/sqlite-log-file.ts'
import { Unavailable } from '../../../../src/oci/errors.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'

const newFolder = useTemporaryFolders('sqlite-commits')

/** A database whose log is synced by `sync`. */
async function openWith(sync: () => Promise<void>): Promise<{ database: SqliteDatabase; path: string }> {
  const path = join(newFolder(), 'metadata.sqlite')
  const file = { sync, close: async () => undefined }
  const database = new SqliteDatabase(path, { log: new SqliteLogFile(`${path}-wal`, async () => file) })
  await database.transaction((queries) => queries.run('CREATE TABLE pushes (id INTEGER PRIMARY KEY) STRICT', []), {
    mayBeLost: true,
  })
  return { database, path }
}

const insert = 'INSERT INTO pushes (id) VALUES ($1)'

function push(database: SqliteDatabase, id: number, mayBeLost = false): Promise<number> {
  return database.transaction((queries) => queries.run(insert, [id]), { mayBeLost })
}

describe('a change', () => {
  test('is acknowledged after the sync that began after its commit, and shares it with others', async () => {
    const started: PromiseWithResolvers<void>[] = []
    const { database } = await openWith(() => {
      const one = Promise.withResolvers<void>()
      started.push(one)
      return one.promise
    })
    const acknowledged: number[] = []
    const add = (id: number) => push(database, id).then(() => acknowledged.push(id))

    const first = add(1)
    while (started.length === 0) await Bun.sleep(1)
    const others = [2, 3, 4].map(add)
    others.push(database.run(insert, [5]).then(() => acknowledged.push(5)))
    while ((await database.all('SELECT id FROM pushes', [])).length < 5) await Bun.sleep(1)
    expect(acknowledged).toEqual([])

    started[0]?.resolve()
    await first
    expect(acknowledged).toEqual([1])
    while (started.length < 2) await Bun.sleep(1)
    started[1]?.resolve()
    await Promise.all(others)
    expect([acknowledged.toSorted(), started.length]).toEqual([[1, 2, 3, 4, 5], 2])
    await database.close()
  })

  test('that may be lost is acknowledged without a sync, and is durable with the next one', async () => {
    let syncs = 0
    const { database } = await openWith(async () => {
      syncs += 1
    })

    await push(database, 1, true)
    expect(syncs).toBe(0)
    await database.flush()
    expect(syncs).toBe(1)
    await database.close()
  })

  test('that cannot be synced fails, and the next one is written into the database file itself', async () => {
    let isBroken = true
    let syncs = 0
    const { database, path } = await openWith(async () => {
      syncs += 1
      if (isBroken) throw new Error('EIO')
    })

    expect(await errorOf(push(database, 1))).toBeInstanceOf(Unavailable)
    isBroken = false
    // The disk works again, but what it says about the log is worth nothing: a checkpoint stands in for the sync.
    const reader = new Sqlite(path)
    reader.run('BEGIN')
    reader.query('SELECT count(*) FROM pushes').get()
    await push(database, 2, true)
    expect(await errorOf(database.flush())).toBeInstanceOf(Unavailable)
    // A checkpoint of another process holds its lock as long as it waits for the reader.
    const script = `const db = new (require('bun:sqlite').Database)(${JSON.stringify(path)})
      db.run('PRAGMA busy_timeout = 10000'); db.run('PRAGMA wal_checkpoint(TRUNCATE)')`
    const other = Bun.spawn([process.execPath, '-e', script])
    using probe = new Sqlite(path)
    while (probe.query('PRAGMA wal_checkpoint(PASSIVE)').values().flat()[0] === 0) await Bun.sleep(1)
    expect(await errorOf(database.flush())).toBeInstanceOf(Unavailable)
    reader.run('COMMIT')
    reader.close()
    expect(await other.exited).toBe(0)
    await push(database, 3)
    const fileAlone = join(newFolder(), 'metadata.sqlite')
    copyFileSync(path, fileAlone)
    using copy = new Sqlite(fileAlone)
    expect([syncs, copy.query('SELECT id FROM pushes').values().flat()]).toEqual([1, [1, 2, 3]])
    await push(database, 4)
    expect(syncs).toBe(2)
    await database.close()
  })

  test('that is synced after a failed sync of earlier changes is not acknowledged before a checkpoint', async () => {
    const syncs: PromiseWithResolvers<void>[] = []
    const { database, path } = await openWith(() => {
      const one = Promise.withResolvers<void>()
      syncs.push(one)
      return one.promise
    })
    const failed = errorOf(push(database, 1))
    while (syncs.length === 0) await Bun.sleep(1)
    // It waits for the sync that follows the running one.
    const next = push(database, 2)
    while ((await database.all('SELECT id FROM pushes', [])).length < 2) await Bun.sleep(1)
    const fileAlone = join(newFolder(), 'metadata.sqlite')

    syncs[0]?.reject(new Error('EIO'))
    expect(await failed).toBeInstanceOf(Unavailable)
    while (syncs.length < 2) await Bun.sleep(1)
    // The kernel reports a failed write once. The pages of the first change may be missing in the log.
    syncs[1]?.resolve()
    await next
    copyFileSync(path, fileAlone)
    using copy = new Sqlite(fileAlone)
    expect(copy.query('SELECT id FROM pushes').values().flat()).toEqual([1, 2])
    await database.close()
  })
})

/**
 * A disk that loses its power: an image has what was written when a sync began, and counts when the sync has ended. Returns
 * how many acknowledged pushes are missing in the last image.
 */
async function countLost(wait: (sync: Promise<void>) => Promise<void>): Promise<number> {
  let taken = 0
  let kept: string | undefined
  const images = newFolder()
  let path = ''
  const opened = await openWith(() => {
    const image = join(images, String(taken++))
    mkdirSync(image)
    for (const end of ['', '-wal']) {
      if (existsSync(path + end)) copyFileSync(path + end, join(image, `metadata.sqlite${end}`))
    }
    const sync = Bun.sleep(Math.random() * 4).then(() => {
      kept = image
    })
    return wait(sync)
  })
  path = opened.path
  await push(opened.database, 0)
  const acknowledged: number[] = []
  let isRunning = true
  let next = 1
  const clients = Array.from({ length: 6 }, async () => {
    while (isRunning) {
      const id = next++
      await push(opened.database, id)
      acknowledged.push(id)
      if (id % 7 === 0) await Bun.sleep(1)
    }
  })
  let lost = 0
  for (let cut = 0; cut < 15; cut += 1) {
    await Bun.sleep(5 + Math.random() * 10)
    const before = [...acknowledged]
    if (kept === undefined) throw new Error('no sync has ended')
    const copy = join(newFolder(), 'metadata.sqlite')
    for (const end of ['', '-wal']) {
      const file = join(kept, `metadata.sqlite${end}`)
      if (existsSync(file)) copyFileSync(file, copy + end)
    }
    using image = new Sqlite(copy)
    const there = new Set(
      image
        .query<{ id: number }, []>('SELECT id FROM pushes')
        .all()
        .map(({ id }) => id),
    )
    lost += before.filter((id) => !there.has(id)).length
  }
  isRunning = false
  await Promise.all(clients)
  await opened.database.close()
  return lost
}

describe('a power failure', () => {
  test('does not lose changes behind those that an earlier process could not sync', async () => {
    const former = await openWith(async () => {
      throw new Error('EIO')
    })
    expect(await errorOf(push(former.database, 1))).toBeInstanceOf(Unavailable)
    const path = join(newFolder(), 'metadata.sqlite')
    for (const end of ['', '-wal']) copyFileSync(former.path + end, path + end)
    await former.database.close().catch(() => undefined)
    const next = new SqliteDatabase(path)
    const fileAlone = join(newFolder(), 'metadata.sqlite')
    copyFileSync(path, fileAlone)
    using copy = new Sqlite(fileAlone)
    expect(copy.query('SELECT id FROM pushes').values().flat()).toEqual([1])
    await next.close()
  })

  test('loses no acknowledged change', async () => {
    expect(await countLost((sync) => sync)).toBe(0)
  })

  test('control: if changes are acknowledged before the sync has ended, some are lost', async () => {
    expect(await countLost(async () => undefined)).toBeGreaterThan(0)
  })
})

test.each(['transaction', 'run', 'returning'] as const)(
  'the write-ahead log is used again while every write by %s follows a read of the same turn',
  async (way) => {
    const path = join(newFolder(), 'metadata.sqlite')
    const database = new SqliteDatabase(path)
    await database.run('CREATE TABLE texts (id {id}, text {text})', [])
    const sql = 'INSERT INTO texts (text) VALUES ($1)'
    const values = ['x'.repeat(40_000)]
    for (let count = 0; count < 1_000; count += 1) {
      await database.first('SELECT count(*) AS count FROM texts WHERE id = $1', [count])
      if (way === 'transaction') await database.transaction((queries) => queries.run(sql, values))
      else await database[way](way === 'run' ? sql : `${sql} RETURNING id`, values)
    }
    const logBytes = statSync(`${path}-wal`).size
    await database.close()

    // The log is copied into the database after 4000 pages of 4 KiB. Without that, 1000 writes make 44 MiB.
    expect(logBytes).toBeLessThan(18 * 1024 * 1024)
  },
)
