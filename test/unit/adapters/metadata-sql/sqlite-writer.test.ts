import { Database as Sqlite } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { SqliteDatabase } from '../../../../src/adapters/metadata-sql/sqlite-database.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'

const newFolder = useTemporaryFolders('sqlite-writer')

async function openDatabase(): Promise<{ database: SqliteDatabase; path: string }> {
  const path = join(newFolder(), 'metadata.sqlite')
  const database = new SqliteDatabase(path)
  await database.run('CREATE TABLE pushes (id INTEGER PRIMARY KEY) STRICT', [])
  return { database, path }
}

const insert = 'INSERT INTO pushes (id) VALUES ($1)'

function push(database: SqliteDatabase, id: number, mayBeLost = false): Promise<number> {
  return database.transaction((queries) => queries.run(insert, [id]), { mayBeLost })
}

describe('changes that arrive together', () => {
  const count = 'SELECT count(*) AS count FROM pushes'
  const reference = 'CREATE TABLE refs (id INTEGER REFERENCES pushes (id) DEFERRABLE INITIALLY DEFERRED) STRICT'

  test.each(['in its work', 'at COMMIT', 'nowhere'] as const)(
    'share a transaction; one that fails %s leaves no trace, and the others do not see its rows',
    async (where) => {
      const { database, path } = await openDatabase()
      await database.run(reference, [])
      using other = new Sqlite(path)
      const versions = new Set<unknown>()
      let runs = 0
      const seen = [1, 2, 3].map((id) =>
        database.transaction(async (queries) => {
          runs += 1
          versions.add(other.query('PRAGMA data_version').values().flat()[0])
          await queries.run(insert, [id])
          if (id === 1 && where === 'in its work') throw new Error('refused')
          if (id === 1 && where === 'at COMMIT') await queries.run('INSERT INTO refs (id) VALUES (9)', [])
          return (await queries.first<{ count: number }>(count, []))?.count
        }),
      )

      const results = (await Promise.allSettled(seen)).map((result) => ('value' in result ? result.value : 'failed'))
      const isWhole = where === 'nowhere'
      expect(results).toEqual(isWhole ? [1, 2, 3] : ['failed', 1, 2])
      expect(await database.first(count, [])).toEqual({ count: isWhole ? 3 : 2 })
      expect(versions.size).toBe(where === 'at COMMIT' ? 2 : 1)
      expect(runs).toBe({ nowhere: 3, 'in its work': 4, 'at COMMIT': 6 }[where])
      await database.close()
    },
  )

  test.each([
    ['after they have written', 'INSERT INTO pushes (id) VALUES ($1 + 1000)', 4],
    ['before they have written', 'DELETE FROM pushes WHERE id = $1 + 1000', 3],
  ])('run once each while changes fail in series, %s', async (_, first, passes) => {
    const { database } = await openDatabase()
    let runs = 0
    const pushOrFail = (id: number) =>
      database.transaction(async (queries) => {
        runs += 1
        if (id % 100 < 63) return queries.run(insert, [id])
        await queries.run(first, [id])
        throw new Error('refused')
      })
    for (const start of [0, 100, 200]) {
      const results = await Promise.allSettled(Array.from({ length: 64 }, (_, at) => pushOrFail(start + at)))
      expect(results.map(({ status }) => status)).toEqual([...Array(63).fill('fulfilled'), 'rejected'])
    }
    expect(runs).toBe(passes * 64)
    expect(await database.first(count, [])).toEqual({ count: 3 * 63 })
    await database.close()
  })

  test('leave nothing behind if SQLite rolls back the transaction by itself', async () => {
    const { database } = await openDatabase()
    await database.run('CREATE TABLE pages (content BLOB) STRICT', [])
    await database.run(`CREATE TRIGGER undo BEFORE INSERT ON pages BEGIN SELECT RAISE(ROLLBACK, 'undone'); END`, [])
    const both = database.transaction((queries) =>
      Promise.all([queries.run('INSERT INTO pages VALUES (zeroblob(1))', []), queries.run(insert, [1])]),
    )
    const others = [2, 3].map((id) => push(database, id))
    expect(await errorOf(both)).toBeInstanceOf(Error)
    expect(await Promise.all(others)).toEqual([1, 1])
    expect((await database.all('SELECT id FROM pushes', [])).length).toBe(2)
    await database.close()
  })

  test('fail if a statement comes after the end of its change', async () => {
    const { database } = await openDatabase()
    let late: Promise<unknown> | undefined
    const refused = database.transaction(async (queries) => {
      late = errorOf(Bun.sleep(1).then(() => queries.run(insert, [1])))
      throw new Error('refused')
    })
    expect(await errorOf(refused)).toEqual(new Error('refused'))
    expect(await late).toEqual(new Error('a statement came after the end of its change'))
    expect(await database.first(count, [])).toEqual({ count: 0 })
    await database.close()
  })

  test('are all settled when the database is closed', async () => {
    const { database } = await openDatabase()
    const pushes = [1, 2, 3].map((id) => push(database, id, true))
    await database.close()
    expect(await Promise.all(pushes)).toEqual([1, 1, 1])
  })
})
