import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listAll, migrate } from '../../../src/adapters/metadata-sql/migrate.ts'
import { PostgresDatabase } from '../../../src/adapters/metadata-sql/postgres-database.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import { SqliteServerLock } from '../../../src/adapters/metadata-sql/sqlite-server-lock.ts'
import { testNeeding } from '../../support/basics/needs.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { postgres } from '../../support/postgres/postgres-server.ts'
import { runBerth } from '../../support/server/berth-command.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'
import { startBerth } from '../../support/server/berth-process.ts'
import { limits, sharedPostgres } from '../../support/stores/test-stores.ts'
import { failed, succeeded, toArguments } from './workplace.ts'

const newFolder = useTemporaryFolders('command-migrate')
const all = listAll().join(', ')
const afterTwo = listAll().slice(2).join(', ')
const upToDate = succeeded('the schema is up to date\n')
const manual = { BERTH_METADATA__MIGRATE: 'manual' }

/** Commands with data in a folder that may not exist yet. A server would not end, so it runs in its own process. */
function workIn(dataDir: string, settings: Readonly<Record<string, string>> = {}) {
  const [folder, environment] = [newFolder(), { BERTH_DATA_DIR: dataDir, ...settings }]
  return (words: string) => (words === 'serve' ? runBerth : runBerthHere)(toArguments([words]), environment, folder)
}

async function inDatabase<T>(dataDir: string, work: (database: SqliteDatabase) => Promise<T>): Promise<T> {
  const database = new SqliteDatabase(join(dataDir, 'metadata.sqlite'))
  return work(database).finally(() => database.close())
}

async function folderWithSchema(version: number): Promise<string> {
  const dataDir = newFolder()
  await inDatabase(dataDir, (database) => migrate(database, version))
  // Every process that opens a database first copies the log of the one before.
  await inDatabase(dataDir, async () => undefined)
  return dataDir
}

async function folderWithEmptyFile(): Promise<string> {
  const dataDir = newFolder()
  writeFileSync(join(dataDir, 'metadata.sqlite'), '')
  return dataDir
}

async function appliedTo(dataDir: string): Promise<number[]> {
  const versions = 'SELECT version FROM schema_versions ORDER BY version'
  const rows = await inDatabase(dataDir, (database) => database.all<{ version: number }>(versions, []))
  return rows.map(({ version }) => version)
}

describe('berth migrate', () => {
  test.each([
    ['in a folder that does not exist', async () => join(newFolder(), 'data'), all],
    ['in an empty file', folderWithEmptyFile, all],
    ['of an older version', () => folderWithSchema(2), afterTwo],
  ])('applies what --dry-run says, which changes nothing: to a database %s', async (_, lay, missing) => {
    const dataDir = await lay()
    const files = () => existsSync(dataDir) && readdirSync(dataDir).map((name) => statSync(join(dataDir, name)).size)
    const [run, before] = [workIn(dataDir), files()]

    for (const _ of [1, 2]) {
      expect(await run('migrate --dry-run')).toEqual(succeeded(`would apply migrations ${missing}\n`))
      expect(files()).toEqual(before)
    }
    expect(await run('migrate')).toEqual(succeeded(`applied migrations ${missing}\n`))
    expect([await run('migrate'), await run('migrate --dry-run')]).toEqual([upToDate, upToDate])
  })

  test('works beside a running server', async () => {
    const server = await startBerth()
    expect(await workIn(server.dataDir)('migrate')).toEqual(upToDate)
    expect(await server.stop()).toBe(0)
  })

  test('changes no schema under a running server, and neither does a second server or another command', async () => {
    const dataDir = await folderWithSchema(2)
    const run = workIn(dataDir)
    const server = new SqliteServerLock(join(dataDir, 'server.lock'))

    for (const command of ['serve', 'migrate', 'gc']) {
      const { exitCode, stderr } = await run(command)
      expect([command, exitCode, await appliedTo(dataDir)]).toEqual([command, 1, [1, 2]])
      expect(stderr).toMatch(/another Berth is serving|a server of an older version is running/)
    }
    server.release()
    expect((await run('migrate')).exitCode).toBe(0)
    expect(await appliedTo(dataDir)).toEqual(listAll())
  })

  test('refuses a schema of a newer version of Berth', async () => {
    const dataDir = await folderWithSchema(listAll().length)
    const newer = 'INSERT INTO schema_versions (version, applied_at, oldest_code) VALUES (99, 0, 99)'
    await inDatabase(dataDir, (database) => database.run(newer, []))

    for (const words of ['migrate', 'migrate --dry-run']) {
      const { exitCode, stdout, stderr } = await workIn(dataDir)(words)
      expect([exitCode, stdout]).toEqual([1, ''])
      expect(stderr).toContain('a newer Berth has brought this database to schema 99')
    }
  })

  // That two at once create it once: test/contract/migrations.test.ts.
  testNeeding(postgres, 'creates the schema in PostgreSQL, where --dry-run creates nothing', async () => {
    const url = await (await sharedPostgres()).newDatabase()
    const run = workIn(newFolder(), { BERTH_METADATA__URL: url })
    for (const _ of [1, 2]) {
      expect(await run('migrate --dry-run')).toEqual(succeeded(`would apply migrations ${all}\n`))
    }
    const database = new PostgresDatabase({ ...limits, url })
    expect(await database.hasTable('schema_versions')).toBe(false)
    await database.close()
    expect([await run('migrate'), await run('migrate')]).toEqual([succeeded(`applied migrations ${all}\n`), upToDate])
  })
})

test('with metadata.migrate: manual, the server and the commands refuse a schema that lacks migrations', async () => {
  for (const [dataDir, missing] of [
    [await folderWithSchema(2), afterTwo],
    [newFolder(), all],
  ] as const) {
    const run = workIn(dataDir, manual)
    const refusal = failed(`the database lacks the migrations ${missing}: run \`berth migrate\``)
    const commands = missing === all ? ['serve'] : ['gc', 'user list', 'account list']
    for (const words of commands) expect([words, await run(words)]).toEqual([words, refusal])

    expect((await run('migrate')).exitCode).toBe(0)
    expect(await run('user list')).toMatchObject({ exitCode: 0, stderr: '' })
    const server = await startBerth({ dataDir, settings: manual })
    expect((await fetch(`${server.url}/v2/`)).status).toBe(401)
    expect(await server.stop()).toBe(0)
  }
})
