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
import { startBerth } from '../../support/server/berth-process.ts'
import { limits, sharedPostgres } from '../../support/stores/test-stores.ts'

const newFolder = useTemporaryFolders('command-migrate')
const all = listAll().join(', ')

/** `berth migrate`, with data in a folder that may not be there yet. */
function workIn(dataDir: string, settings: Readonly<Record<string, string>> = {}) {
  const folder = newFolder()
  const run = (...args: string[]) => runBerth(args, { BERTH_DATA_DIR: dataDir, ...settings }, folder)
  return { run, dryRun: () => run('migrate', '--dry-run'), migrate: () => run('migrate') }
}

async function ageTo(dataDir: string, version: number): Promise<void> {
  const database = new SqliteDatabase(join(dataDir, 'metadata.sqlite'))
  await migrate(database, version)
  await database.close()
}

async function appliedTo(dataDir: string): Promise<number[]> {
  const database = new SqliteDatabase(join(dataDir, 'metadata.sqlite'))
  const rows = await database.all<{ version: number }>('SELECT version FROM schema_versions ORDER BY version', [])
  await database.close()
  return rows.map(({ version }) => version)
}

const manual = { BERTH_METADATA__MIGRATE: 'manual' }
const done = (stdout: string) => ({ exitCode: 0, stdout: `${stdout}\n`, stderr: '' })

describe('berth migrate', () => {
  test('makes the schema where there is nothing yet, and has nothing to do the next time', async () => {
    const dataDir = join(newFolder(), 'data')
    const { migrate: bringUp } = workIn(dataDir)

    expect(await bringUp()).toEqual(done(`applied migrations ${all}`))
    expect(await bringUp()).toEqual(done('the schema is up to date'))
  })

  test('with --dry-run says what is missing, and makes nothing, not even a folder', async () => {
    const dataDir = join(newFolder(), 'data')
    const { dryRun, migrate: bringUp } = workIn(dataDir)

    expect(await dryRun()).toEqual(done(`would apply migrations ${all}`))
    expect(existsSync(dataDir)).toBe(false)

    await bringUp()
    expect(await dryRun()).toEqual(done('the schema is up to date'))
  })

  test('with --dry-run takes a file without anything in it for a new database, and leaves it so', async () => {
    const dataDir = newFolder()
    writeFileSync(join(dataDir, 'metadata.sqlite'), '')

    expect(await workIn(dataDir).dryRun()).toEqual(done(`would apply migrations ${all}`))
    expect(Bun.file(join(dataDir, 'metadata.sqlite')).size).toBe(0)
    expect(readdirSync(dataDir)).toEqual(['metadata.sqlite'])
  })

  test('brings an older schema up, by what it said before', async () => {
    const dataDir = newFolder()
    await ageTo(dataDir, 2)
    const { dryRun, migrate: bringUp } = workIn(dataDir)
    const rest = listAll().slice(2).join(', ')

    expect(await dryRun()).toEqual(done(`would apply migrations ${rest}`))
    expect(await dryRun()).toEqual(done(`would apply migrations ${rest}`))
    expect(await bringUp()).toEqual(done(`applied migrations ${rest}`))
  })

  test('works beside a server that runs', async () => {
    const server = await startBerth()
    expect(await workIn(server.dataDir).migrate()).toEqual(done('the schema is up to date'))
    expect(await server.stop()).toBe(0)
  })

  test('changes no schema under a server that runs, and neither does a second server or another command', async () => {
    const dataDir = newFolder()
    await ageTo(dataDir, 2)
    const { run, migrate: bringUp } = workIn(dataDir)
    const server = new SqliteServerLock(join(dataDir, 'server.lock'))

    for (const command of ['serve', 'migrate', 'gc']) {
      const { exitCode, stderr } = await run(command)
      expect([command, exitCode, await appliedTo(dataDir)]).toEqual([command, 1, [1, 2]])
      expect(stderr).toMatch(/another Berth is serving|a server of an older version is running/)
    }
    server.release()
    expect((await bringUp()).exitCode).toBe(0)
    expect(await appliedTo(dataDir)).toEqual(listAll())
  })

  test('refuses a schema of a newer Berth', async () => {
    const dataDir = newFolder()
    const { migrate: bringUp, dryRun } = workIn(dataDir)
    await bringUp()
    const database = new SqliteDatabase(join(dataDir, 'metadata.sqlite'))
    await database.run('INSERT INTO schema_versions (version, applied_at, oldest_code) VALUES (99, 0, 99)', [])
    await database.close()

    for (const command of [bringUp, dryRun]) {
      const { exitCode, stdout, stderr } = await command()
      expect([exitCode, stdout]).toEqual([1, ''])
      expect(stderr).toContain('a newer Berth has brought this database to schema 99')
    }
  })

  testNeeding(
    postgres,
    'lists all for an empty PostgreSQL, makes nothing there, and brings it up, two at once',
    async () => {
      const url = await (await sharedPostgres()).newDatabase()
      const { dryRun, migrate: bringUp } = workIn(newFolder(), { BERTH_METADATA__URL: url })
      const database = new PostgresDatabase({ ...limits, url })

      expect(await dryRun()).toEqual(done(`would apply migrations ${all}`))
      expect(await database.hasTable('schema_versions')).toBe(false)

      const both = await Promise.all([bringUp(), bringUp()])
      expect(both.map(({ exitCode }) => exitCode)).toEqual([0, 0])
      expect(both.map(({ stdout }) => stdout).toSorted()).toEqual([
        `applied migrations ${all}\n`,
        'the schema is up to date\n',
      ])
      await database.close()
    },
  )
})

describe('with metadata.migrate: manual', () => {
  test('the server and the commands refuse a schema that lacks something, and say what to do', async () => {
    const dataDir = newFolder()
    await ageTo(dataDir, 2)
    const { run, migrate: bringUp } = workIn(dataDir, manual)
    const lacks = `the database lacks the migrations ${listAll().slice(2).join(', ')}: run \`berth migrate\``

    for (const command of [['serve'], ['gc'], ['user', 'list'], ['account', 'list']]) {
      expect([command, await run(...command)]).toEqual([
        command,
        { exitCode: 1, stdout: '', stderr: `berth: ${lacks}\n` },
      ])
    }
    expect((await bringUp()).exitCode).toBe(0)
    expect(await run('user', 'list')).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('a first server needs `berth migrate` before it, and then starts', async () => {
    const dataDir = newFolder()
    const { run, migrate: bringUp } = workIn(dataDir, manual)
    expect((await run('serve')).stderr).toContain(`the database lacks the migrations ${all}`)

    await bringUp()
    const server = await startBerth({ dataDir, settings: manual })
    expect((await fetch(`${server.url}/v2/`)).status).toBe(401)
    expect(await server.stop()).toBe(0)
  })
})
