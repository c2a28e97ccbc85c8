// Limits of what is asked of PostgreSQL, failures that a new connection cures, and migrations, which have time.
import { describe, expect, test } from 'bun:test'
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import { describeNeeding } from '../support/basics/needs.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import {
  type BrokenPostgres,
  countThings,
  endOf,
  insert,
  limits,
  nameOf,
  put,
  useAllConnections,
  useBrokenPostgres,
} from './broken-postgres.ts'

describeNeeding(postgres, 'limits of PostgreSQL', () => {
  const world = useBrokenPostgres()
  describe('limits', () => limitsOfWork(world))
  describe('a new connection cures', () => curedByNewConnections(world))
  describe('migrations', () => migrations(world))
})

async function pidOf(database: PostgresDatabase): Promise<number | undefined> {
  return (await database.first<{ pid: number }>('SELECT pg_backend_pid() AS pid WHERE $1 = 1', [1]))?.pid
}

function limitsOfWork(world: BrokenPostgres): void {
  test('end a statement that takes too long, and the connection stays', async () => {
    const database = await world.open({ connectionsMax: 2 })
    const pid = await pidOf(database)

    expect(await endOf(database.run('SELECT pg_sleep($1)', [10]))).toBe('57014')

    expect(await pidOf(database)).toBe(pid)
  })

  test('end a wait for a lock, and the transaction with it', async () => {
    const database = await world.open()
    await put(database, 1)
    const lock = 'SELECT id FROM things t WHERE id = $1 {for update t}'

    await database.transaction(async (holder) => {
      await holder.first(lock, [1])
      const waiting = database.transaction(async (queries) => {
        await queries.run(insert, [2])
        await queries.first(lock, [1])
      })
      expect(await endOf(waiting)).toBe('55P03')
    })

    expect(await countThings(database)).toBe(1)
  })

  test('refuse a request when too many wait already, and a request that waits for too long', async () => {
    const database = await world.open({ statementTimeoutMs: 1_000 })
    const held = Promise.withResolvers<void>()
    const holding = [1, 2].map(() => database.transaction(() => held.promise))
    const waiting = Array.from({ length: limits.queueMax }, (_, id) => put(database, id).then(() => 'done'))

    expect(await endOf(put(database, 99))).toBe('NoSlot')
    expect(await Promise.all(waiting.map(endOf))).toEqual(waiting.map(() => 'NoSlot'))

    held.resolve()
    expect(await Promise.all(holding.map(endOf))).not.toContain('NoSlot')
    expect(await countThings(database)).toBe(0)
    await useAllConnections(database)
  })

  test('let nothing be asked of a transaction that is over', async () => {
    const database = await world.open()
    let kept: Parameters<Parameters<typeof database.transaction>[0]>[0] | undefined
    await database.transaction(async (queries) => {
      kept = queries
    })

    expect(kept?.run(insert, [1])).rejects.toThrow('after the end of its transaction')
    expect(await countThings(database)).toBe(0)
  })

  test('let no work go on to its commit after a statement of it has failed', async () => {
    const database = await world.open()

    const work = database.transaction(async (queries) => {
      await queries.run(insert, [1])
      await queries.run(insert, [1]).catch(() => undefined)
    })

    expect(work).rejects.toThrow('after one of its statements had failed')
    expect(await countThings(database)).toBe(0)
  })

  test('prepare each statement once a connection, by its text', async () => {
    const database = await world.open({ connectionsMax: 2 })
    for (let id = 0; id < 5; id += 1) await put(database, id)

    const prepared = await database.all<{ times: number }>(
      `SELECT generic_plans + custom_plans AS times FROM pg_prepared_statements WHERE statement = $1`,
      [insert],
    )

    expect(prepared.map(({ times }) => times)).toEqual([5])
  })
}

function curedByNewConnections(world: BrokenPostgres): void {
  test('a server that takes no writes is left, and found again when it does', async () => {
    const url = await world.server.newDatabase()
    await world.server.ask(`ALTER DATABASE ${nameOf(url)} SET default_transaction_read_only = on`)
    const database = new PostgresDatabase({ ...limits, url })
    await useAllConnections(database)
    expect(await endOf(database.run('CREATE TABLE things (id {number} PRIMARY KEY)', []))).toBe('25006')

    await world.server.ask(`ALTER DATABASE ${nameOf(url)} RESET default_transaction_read_only`)

    // The connections that were made before would take no writes to this day.
    expect(await endOf(database.run('CREATE TABLE things (id {number} PRIMARY KEY)', []))).toBe('done')
    expect(await Promise.all([1, 2, 3].map((id) => endOf(put(database, id))))).toEqual(['done', 'done', 'done'])
  })

  test('more connections than the server allows make the one request fail that wanted another', async () => {
    const url = await world.server.newDatabase()
    const role = `limited_${nameOf(url)}`
    await world.server.ask(`CREATE ROLE ${role} LOGIN CONNECTION LIMIT 1`)
    const database = new PostgresDatabase({ ...limits, url: url.replace('berth@', `${role}@`) })

    await database.transaction(async (queries) => {
      await queries.first('SELECT 1 AS here', [])
      expect(await endOf(database.first('SELECT 1 AS here', []))).toBe('53300')
    })

    expect(await endOf(database.first('SELECT 1 AS here', []))).toBe('done')
  })

  test('a prepared statement whose table was changed meanwhile, within a transaction too', async () => {
    const database = await world.open({ connectionsMax: 2 })
    const look = 'SELECT * FROM things WHERE id < $1'
    await database.all(look, [10])
    await database.run('ALTER TABLE things ADD COLUMN more {text}', [])
    expect(await endOf(database.all(look, [10]))).toBe('done')
    await database.run('ALTER TABLE things ADD COLUMN still_more {text}', [])

    const within = () => endOf(database.transaction((queries) => queries.all(look, [10])))

    expect([await within(), await within()]).toEqual(['0A000', 'done'])
  })
}

function migrations(world: BrokenPostgres): void {
  test('wait for those of another server, longer than a statement may take', async () => {
    const url = await world.server.newDatabase()
    const [one, two] = [await world.open({ url }), await world.open({ url })]
    const order: string[] = []
    const begun = Promise.withResolvers<void>()

    const first = one.withMigrationLock(async () => {
      order.push('first begins')
      begun.resolve()
      await Bun.sleep(1_200)
      order.push('first ends')
    })
    await begun.promise
    await two.withMigrationLock(async () => void order.push('second'))
    await first

    expect(order).toEqual(['first begins', 'first ends', 'second'])
  })

  test('may take longer than a statement may, and nothing else may afterwards', async () => {
    const database = await world.open({ connectionsMax: 2 })
    const sleep = () => database.transaction((queries) => queries.run('SELECT pg_sleep($1)', [1]))

    expect(await endOf(database.withMigrationLock(sleep))).toBe('done')
    expect(await endOf(database.snapshot((queries) => queries.run('SELECT pg_sleep($1)', [1])))).toBe('done')
    expect(await endOf(sleep())).toBe('57014')
  })

  test('of a server that is lost are let go', async () => {
    const url = await world.server.newDatabase()
    const [one, two] = [await world.open({ url }), await world.open({ url })]

    await one.withMigrationLock(async () => {
      await world.endBackends(url)
      expect(await endOf(two.withMigrationLock(async () => undefined))).toBe('done')
    })
  })
}
