// PostgreSQL that fails, seen through the adapter: whatever happens to a connection, each statement on it ends, and the
// database is there again as soon as the server is.
import { describe, expect, test } from 'bun:test'
import { describeNeeding } from '../support/basics/needs.ts'
import { until } from '../support/clocks/until.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import {
  type BrokenPostgres,
  countThings,
  endOf,
  insert,
  limits,
  put,
  useAllConnections,
  useBrokenPostgres,
} from './broken-postgres.ts'

describeNeeding(postgres, 'connections to PostgreSQL that fails', () => {
  const world = useBrokenPostgres()
  describe('a connection that is ended', () => endedConnections(world))
  describe('a server that goes', () => serversThatGo(world))
  describe('a server that is silent', () => silentServers(world))
})

function endedConnections(world: BrokenPostgres): void {
  test('at rest is not used again', async () => {
    const url = await world.server.newDatabase()
    const database = await world.open({ url })
    await useAllConnections(database)

    await world.endBackends(url)
    await until('they are gone', async () => (await endOf(put(database, 1))) === 'done')

    await useAllConnections(database)
    expect(await countThings(database)).toBe(1)
  })

  test('within a statement makes it fail as unavailable, and is replaced', async () => {
    const url = await world.server.newDatabase()
    const database = await world.open({ url, statementTimeoutMs: 20_000 })
    const sleeping = endOf(database.run('SELECT pg_sleep($1)', [15]))
    await until('it sleeps', async () => {
      await world.endBackends(url, "query LIKE '%pg_sleep%'")
      return (await Promise.race([sleeping, Bun.sleep(10)])) !== undefined
    })

    expect(await sleeping).toBe('57P01')
    await useAllConnections(database)
  })

  test('within a transaction leaves nothing of it, nor does the rest of the work run outside of it', async () => {
    const url = await world.server.newDatabase()
    const database = await world.open({ url })

    const work = database.transaction(async (queries) => {
      await queries.run(insert, [1])
      await world.endBackends(url)
      await Bun.sleep(20)
      await queries.run(insert, [2]).catch(() => undefined)
      await queries.run(insert, [3])
    })

    expect(await endOf(work)).toMatch(/^(57P01|ConnectionLost)$/)
    expect(await countThings(database)).toBe(0)
    await useAllConnections(database)
  })

  test('under many look-ups ends those, and the next ones have another', async () => {
    const url = await world.server.newDatabase()
    const database = await world.open({ url, statementTimeoutMs: 20_000 })
    const look = () => endOf(database.lookUp('SELECT pg_sleep($1)', [0.2]))
    await database.lookUp('SELECT 1 AS here WHERE $1 = 1', [1])

    const looking = [look(), look(), look()]
    await Bun.sleep(50)
    await world.endBackends(url)

    expect(await Promise.all(looking)).not.toContain('done')
    expect(await look()).toBe('done')
  })

  for (const moment of ['before', 'after'] as const) {
    test(`${moment} COMMIT was done leaves ${moment === 'before' ? 'nothing' : 'all'} of it, and the caller gets an error`, async () => {
      const { database, proxy } = await world.throughProxy()
      proxy.cutAt(3, moment)

      const work = database.transaction(async (queries) => queries.run(insert, [1]))

      expect(await endOf(work)).not.toBe('done')
      expect(proxy.cuts).toBe(1)
      expect(proxy.statements).toEqual(['BEGIN', insert, 'COMMIT'])
      expect(await countThings(database)).toBe(moment === 'before' ? 0 : 1)
    })
  }
}

function serversThatGo(world: BrokenPostgres): void {
  for (const how of ['killed', 'shut down fast', 'shut down at once'] as const) {
    test(`is used again after it was ${how}`, async () => {
      const database = await world.open()
      await put(database, 1)
      const sleeping = endOf(database.run('SELECT pg_sleep($1)', [0.5]))
      await Bun.sleep(50)

      if (how === 'killed') await world.server.kill()
      else await world.server.shutDown(how === 'shut down fast' ? 'fast' : 'immediate')

      expect(await sleeping).not.toBe('done')
      expect(await endOf(put(database, 2))).not.toBe('done')
      expect(await endOf(database.lookUp('SELECT $1', ['x']))).not.toBe('done')
      await world.server.start()
      await until('it is used again', async () => (await endOf(put(database, 3))) === 'done')
      expect(await countThings(database)).toBe(2)
      await useAllConnections(database)
    })
  }
}

function silentServers(world: BrokenPostgres): void {
  test('fails statements, look-ups, transactions and waiting requests in time, and is used again when it answers', async () => {
    const database = await world.open()
    await useAllConnections(database)
    const reached = Promise.withResolvers<void>()
    const frozen = Promise.withResolvers<void>()
    const transaction = database.transaction(async (queries) => {
      await queries.run(insert, [1])
      reached.resolve()
      await frozen.promise
    })
    await reached.promise

    world.server.freeze()
    try {
      frozen.resolve()
      const asked = [transaction, put(database, 2), put(database, 3), database.lookUp('SELECT $1', ['x'])]
      expect(await Promise.all(asked.map(endOf))).not.toContain('done')
      // All connections are gone, and new ones are not answered either.
      expect(await endOf(put(database, 4))).not.toBe('done')
      expect(await endOf(database.lookUp('SELECT $1', ['x']))).not.toBe('done')
    } finally {
      world.server.thaw()
    }

    await until('it is used again', async () => (await endOf(put(database, 5))) === 'done')
    await useAllConnections(database)
  })

  test('and whose connections vanished is connected to again, at once for all idle connections', async () => {
    const { database, proxy } = await world.throughProxy()
    await useAllConnections(database)
    expect(proxy.connections).toBe(limits.connectionsMax)

    proxy.hold()

    expect(await endOf(put(database, 1))).toBe('ConnectionLost')
    // The other idle connections are dead too, but they need not fail one by one.
    expect(await endOf(put(database, 2))).toBe('done')
    expect(await endOf(put(database, 3))).toBe('done')
    expect(await endOf(database.lookUp('SELECT $1', ['x']))).toBe('done')
    await useAllConnections(database)
  })
}
