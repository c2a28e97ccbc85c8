import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { SqliteDatabase } from '../../../../src/adapters/metadata-sql/sqlite-database.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('sqlite')

test.each(['transaction', 'run', 'returning'] as const)(
  'the write-ahead log is used again while every write by %s follows a read of the same turn',
  async (way) => {
    const path = join(temporaryFolder(), 'metadata.sqlite')
    const database = new SqliteDatabase(path)
    await database.run('CREATE TABLE texts (id {id}, text {text})', [])
    const sql = 'INSERT INTO texts (text) VALUES ($1)'
    const values = ['x'.repeat(40_000)]
    for (let count = 0; count < 500; count += 1) {
      await database.first('SELECT count(*) AS count FROM texts WHERE id = $1', [count])
      if (way === 'transaction') await database.transaction((queries) => queries.run(sql, values))
      else await database[way](way === 'run' ? sql : `${sql} RETURNING id`, values)
    }
    const logBytes = statSync(`${path}-wal`).size
    await database.close()

    // SQLite copies the log into the database after 1000 pages of 4 KiB. Without that, 500 writes make 22 MiB.
    expect(logBytes).toBeLessThan(6 * 1024 * 1024)
  },
)
