import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
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
  return dataDir
}

async function appliedTo(dataDir: string): Promise<number[]> {
  const versions = 'SELECT version FROM schema_versions ORDER BY version'
  const rows = await inDatabase(dataDir, (database) => database.all<{ version: number }>(versions, []))
  return rows.map(({ version }) => version)
}

describe('berth migrate', () => {
  test('creates the schema where there is none; --dry-run only says what is missing, and creates no folder', async () => {
    const dataDir = join(newFolder(), 'data')
    const run = workIn(dataDir)

    expect(await run('migrate --dry-run')).toEqual(succeeded(`would apply migrations ${all}\n`))
    expect(existsSync(dataDir)).toBe(false)
    expect(await run('migrate')).toEqual(succeeded(`applied migrations ${all}\n`))
    expect([await run('migrate'), await run('migrate --dry-run')]).toEqual([upToDate, upToDate])
  })

  test('with --dry-run takes an empty file for a new database, and leaves it so', async () => {
    const dataDir = newFolder()
    writeFileSync(join(dataDir, 'metadata.sqlite'), '')

    expect(await workIn(dataDir)('migrate --dry-run')).toEqual(succeeded(`would apply migrations ${all}\n`))
    expect(Bun.file(join(dataDir, 'metadata.sqlite')).size).toBe(0)
    expect(readdirSync(dataDir)).toEqual(['metadata.sqlite'])
  })

  test('applies to an older schema what --dry-run says', async () => {
    const run = workIn(await folderWithSchema(2))
    for (const _ of [1, 2]) {
      expect(await run('migrate --dry-run')).toEqual(succeeded(`would apply migrations ${afterTwo}\n`))
    }
    expect(await run('migrate')).toEqual(succeeded(`applied migrations ${afterTwo}\n`))
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

  testNeeding(postgres, 'creates the schema in PostgreSQL once, in two processes at once', async () => {
    const url = await (await sharedPostgres()).newDatabase()
    const environment = { BERTH_DATA_DIR: newFolder(), BERTH_METADATA__URL: url }
    const database = new PostgresDatabase({ ...limits, url })
    const dryRun = await runBerthHere(['migrate', '--dry-run'], environment, newFolder())
    expect(dryRun).toEqual(succeeded(`would apply migrations ${all}\n`))
    expect(await database.hasTable('schema_versions')).toBe(false)
    await database.close()

    const both = await Promise.all([1, 2].map(() => runBerth(['migrate'], environment, newFolder())))
    expect(both.map(({ exitCode }) => exitCode)).toEqual([0, 0])
    expect(both.map(({ stdout }) => stdout).toSorted()).toEqual([`applied migrations ${all}\n`, upToDate.stdout])
  })
})

describe('with metadata.migrate: manual', () => {
  test('the server and the commands refuse a schema that lacks migrations, and say what to do', async () => {
    const run = workIn(await folderWithSchema(2), manual)
    const refusal = failed(`the database lacks the migrations ${afterTwo}: run \`berth migrate\``)

    for (const words of ['serve', 'gc', 'user list', 'account list']) {
      expect([words, await run(words)]).toEqual([words, refusal])
    }
    expect((await run('migrate')).exitCode).toBe(0)
    expect(await run('user list')).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('a first server needs `berth migrate` before it, and then starts', async () => {
    const dataDir = newFolder()
    const run = workIn(dataDir, manual)
    expect((await run('serve')).stderr).toContain(`the database lacks the migrations ${all}`)

    await run('migrate')
    const server = await startBerth({ dataDir, settings: manual })
    expect((await fetch(`${server.url}/v2/`)).status).toBe(401)
    expect(await server.stop()).toBe(0)
  })
})
