import { Database as Sqlite } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../src/adapters/metadata-sql/sqlite-database.ts'
import { Unavailable } from '../../src/oci/errors.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { projectRoot } from '../support/basics/test-project.ts'
import { addManifest, openShelf, tagged } from '../support/stores/metadata-rows.ts'
import { metadataStoreContract } from './metadata-store.ts'
import { uploadsControls } from './metadata-uploads.ts'
import { NamedStatements } from './named-statements.ts'
import { signingKeysContract } from './signing-keys.ts'
import { sqlitePlansContract } from './sqlite-plans.ts'
import { usersControls } from './users.ts'

const temporaryFolder = useTemporaryFolders('metadata')
const opened: SqlMetadataStore[] = []
const statements = new NamedStatements()

afterAll(async () => {
  for (const metadata of opened) await metadata.close()
})

async function openSqlite(path = join(temporaryFolder(), 'metadata.sqlite')): Promise<SqlMetadataStore> {
  const metadata = await statements.open(new SqliteDatabase(path))
  opened.push(metadata)
  return metadata
}

metadataStoreContract('SQLite', openSqlite)
describe('users', usersControls)
describe('uploads', () => uploadsControls(openSqlite))
signingKeysContract('SQLite', async () => {
  const metadata = await openSqlite()
  return { keys: metadata.signingKeys(), reopen: () => metadata.signingKeys() }
})

describe('metadata store, SQLite: settings of each connection', () => {
  // The reader answers `first` outside a transaction, the writer inside one.
  async function settingsOf(database: SqliteDatabase) {
    const names = ['journal_mode', 'synchronous', 'foreign_keys']
    const read = (queries: Pick<SqliteDatabase, 'first'>) =>
      Promise.all(names.map(async (name) => Object.values((await queries.first(`PRAGMA ${name}`, [])) ?? {})[0]))
    return { reader: await read(database), writer: await database.transaction((queries) => read(queries)) }
  }
  // The log of the writer is synced by `SqliteLogFile`; see `unit/adapters/metadata-sql/sqlite-commits.test.ts`.
  const expected = { reader: ['wal', 2, 1], writer: ['wal', 1, 1] }

  test('are WAL, durable and foreign keys on, in a new database and in one that is opened again', async () => {
    const path = join(temporaryFolder(), 'metadata.sqlite')
    for (let time = 0; time < 2; time += 1) {
      const database = new SqliteDatabase(path)
      expect(await settingsOf(database)).toEqual(expected)
      await database.close()
      await (await SqlMetadataStore.open(new SqliteDatabase(path))).close()
    }
    // The control: a plain connection to the same database has other settings.
    using plain = new Sqlite(path)
    const settings = ['synchronous', 'foreign_keys'].map(
      (name) => Object.values(plain.query(`PRAGMA ${name}`).get() ?? {})[0],
    )
    expect(settings).not.toEqual([2, 1])
  })
})

describe('metadata store, SQLite: more than one process', () => {
  test('two stores on one file see each other at once', async () => {
    const path = join(temporaryFolder(), 'metadata.sqlite')
    const [one, other] = [await openSqlite(path), await openSqlite(path)]
    const shelf = await openShelf(one)

    for (const text of ['one', 'two', 'three']) {
      const { digest } = await addManifest(shelf, text, { tag: 'latest' })
      // The reads of one iteration of the event loop share a snapshot; a commit of another process is seen in the next one.
      await new Promise(setImmediate)
      expect((await other.manifests.find(shelf.scope, { tag: tagged('latest') }))?.digest).toBe(digest)
    }
  })

  test.each(['lookUp', 'first', 'all'] as const)(
    'a worker sees the commit of another one within an iteration of its event loop: %s',
    async (way) => {
      const path = join(temporaryFolder(), 'metadata.sqlite')
      const supervisor = new SqliteDatabase(path)
      await supervisor.run('CREATE TABLE texts (id {id}, text {text})', [])
      await supervisor.run("INSERT INTO texts (text) VALUES ('0')", [])
      const worker = new SqliteDatabase(path, { isWorker: true })
      using writer = new Sqlite(path)
      const read = async () => [await worker[way]('SELECT text FROM texts WHERE id = $1', [1])].flat()

      await new Promise(setImmediate)
      for (const text of ['1', '2', '3']) {
        writer.run('UPDATE texts SET text = ?', [text])
        expect([await read(), await read()]).toEqual([[{ text }], [{ text }]])
      }
      await worker.close()
      await supervisor.close()
    },
  )

  test('several processes may be the first to bring a database up to date', async () => {
    const folder = temporaryFolder()
    const env = { ...process.env, BERTH_DATA_DIR: folder }
    // To SQLite a file without anything in it is a new database; to the command it is data that is there.
    await Bun.write(join(folder, 'metadata.sqlite'), '')

    const commands = Array.from({ length: 3 }, () =>
      Bun.spawn([process.execPath, 'src/main.ts', 'gc'], { cwd: projectRoot, env, stdout: 'ignore', stderr: 'pipe' }),
    )

    for (const command of commands) {
      expect({ code: await command.exited, said: await command.stderr.text() }).toEqual({ code: 0, said: '' })
    }
  })
})

describe('metadata store, SQLite: when the engine fails', () => {
  test('a file that is not a database is reported as unavailable', async () => {
    const path = join(temporaryFolder(), 'metadata.sqlite')
    await Bun.write(path, 'this is not a database, whatever its name says'.repeat(100))

    expect(await errorOf((async () => openSqlite(path))())).toBeInstanceOf(Unavailable)
  })

  test('a missing folder is reported as unavailable', async () => {
    const path = join(temporaryFolder(), 'missing', 'metadata.sqlite')

    expect(await errorOf((async () => openSqlite(path))())).toBeInstanceOf(Unavailable)
  })

  test('a closed store is reported as unavailable, not as a bug', async () => {
    const metadata = await SqlMetadataStore.open(new SqliteDatabase(join(temporaryFolder(), 'metadata.sqlite')))
    await metadata.close()

    expect(await errorOf(metadata.probe())).toBeInstanceOf(Unavailable)
    expect(await errorOf(metadata.accounts.ensure('acme'))).toBeInstanceOf(Unavailable)
  })
})

// Last, because it looks at the statements that the tests above have asked.
sqlitePlansContract(openSqlite, statements, () => new SqliteDatabase(join(temporaryFolder(), 'plans.sqlite')))
