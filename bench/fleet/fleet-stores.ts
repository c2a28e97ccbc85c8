// The stores: PostgreSQL in its newest version, and a real S3 server. The strict S3 stub of the tests is not enough,
// because docker-registry uses more operations (copies, ACLs, storage classes).
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { postgres, startPostgres } from '../../test/support/postgres/postgres-server.ts'
import { canStartCeph, startCeph } from '../../test/support/s3/ceph-server.ts'
import type { S3Server } from '../../test/support/s3/s3-server.ts'
import { s3Variables } from '../../test/support/stores/test-stores.ts'

export interface FleetStores {
  readonly s3: S3Server
  readonly postgresPid: number
  readonly postgresVersion: string
  /** The settings for Berth. */
  readonly settings: Readonly<Record<string, string>>
  stop(): Promise<void>
}

export async function startFleetStores(): Promise<FleetStores> {
  for (const { isMet, reason } of [postgres, canStartCeph()]) if (!isMet) throw new Error(reason)
  const database = await startPostgres()
  try {
    const s3 = await startCeph()
    return {
      s3,
      postgresPid: Number(readFileSync(join(database.dataDir, 'postmaster.pid'), 'utf8').split('\n')[0]),
      postgresVersion: database.version,
      settings: { BERTH_METADATA__URL: await database.newDatabase(), ...s3Variables(s3, 'berth/') },
      stop: async () => {
        await s3.stop()
        await database.stop()
      },
    }
  } catch (error) {
    await database.stop()
    throw error
  }
}
