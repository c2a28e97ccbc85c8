// What PostgreSQL alone can get wrong: a statement that began before a mark was put, and was held up, sees it all the same.
import { describe, expect } from 'bun:test'
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import type { Tables } from '../../src/ports/metadata-store.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { Gate } from '../support/clocks/gates.ts'
import { until } from '../support/clocks/until.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import { openShelf } from '../support/stores/metadata-rows.ts'
import { limits, sharedPostgres } from '../support/stores/test-stores.ts'

const looks: Readonly<Record<string, (tables: Tables, accountId: number) => Promise<boolean>>> = {
  'its account': async ({ accounts }, accountId) => (await accounts.findLocked(accountId))?.isReadOnly === true,
  'the mark': async ({ marks }) => (await marks.findLocked('read-only')) !== undefined,
}

async function openWide() {
  const server = await sharedPostgres()
  const url = await server.newDatabase()
  const metadata = await SqlMetadataStore.open(new PostgresDatabase({ ...limits, connectionsMax: 8, url }))
  const database = new URL(url).pathname.slice(1)
  /** So many connections wait for a lock. */
  const waiting = async () => {
    const [row] = await server.ask<{ waiting: string }>(
      `SELECT count(*) AS waiting FROM pg_stat_activity WHERE datname = '${database}' AND wait_event_type = 'Lock'`,
    )
    return Number(row?.waiting)
  }
  return { metadata, waiting }
}

describe('the mark that forbids changes', () => {
  for (const [what, look] of Object.entries(looks)) {
    for (const isPrepared of [false, true]) {
      const when = isPrepared ? 'by a statement that is prepared already' : 'for the first time'
      testNeeding(postgres, `is seen by a transaction that was held up as it looked at ${what} ${when}`, async () => {
        const { metadata, waiting } = await openWide()
        const { accountId } = await openShelf(metadata)
        const seeing = () => metadata.transaction((tables) => look(tables, accountId))
        // On every connection that a transaction can get.
        if (isPrepared) await Promise.all(Array.from({ length: 6 }, seeing))
        const gate = new Gate()
        const before = metadata.transaction(async (tables) => {
          const seen = await look(tables, accountId)
          await gate.pass()
          return seen
        })
        await gate.reached

        const forbidding = metadata.transaction(async ({ marks }) => {
          await marks.lockExclusively()
          await marks.set('read-only', 'because')
        })
        await until('the mark waits', async () => (await waiting()) === 1)
        const late = seeing()
        await until('the late one waits behind it', async () => (await waiting()) === 2)
        gate.open()

        expect([await before, await late]).toEqual([false, true])
        await forbidding
        await metadata.close()
      })
    }
  }
})
