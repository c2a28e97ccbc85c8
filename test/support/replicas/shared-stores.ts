// What several replicas share: a PostgreSQL database and a part of a bucket, both of which no other test uses.

import type { Need } from '../basics/needs.ts'
import { postgres } from '../postgres/postgres-server.ts'
import type { S3Server } from '../s3/s3-server.ts'
import { freshPrefix, sharedS3, testS3Need } from '../s3/test-s3.ts'
import { newMigratedDatabase, s3Variables } from '../stores/test-stores.ts'

export interface SharedStores {
  readonly s3: S3Server
  readonly prefix: string
  /** What a server has to be told to work on them. */
  readonly settings: Readonly<Record<string, string>>
  /** A statement past every server. Numbers come back as they should if they are cast to int. */
  ask<R extends object>(sql: string): Promise<R[]>
  close(): Promise<void>
}

export const sharedStoresNeed: Need = postgres.isMet ? testS3Need() : postgres

/** `s3Url`: where the servers find S3, if it is not where it is. */
export async function openSharedStores({ s3Url }: { readonly s3Url?: string } = {}): Promise<SharedStores> {
  const databaseUrl = await newMigratedDatabase()
  const s3 = await sharedS3()
  const prefix = freshPrefix()
  const admin = new Bun.SQL({ url: databaseUrl, max: 2 })
  return {
    s3,
    prefix,
    settings: {
      BERTH_METADATA__URL: databaseUrl,
      BERTH_METADATA__CONNECTIONS: '6',
      ...s3Variables({ ...s3, url: s3Url ?? s3.url }, prefix),
    },
    ask: async <R extends object>(sql: string): Promise<R[]> => [...(await admin.unsafe(sql))],
    close: () => admin.close({ timeout: 0 }),
  }
}

/** The lease of a blob, and its place in the collector's queue, become so much older. */
export async function growBlob({ ask }: SharedStores, digest: string, ageMs = 172_800_000): Promise<void> {
  const itself = `(SELECT id FROM blobs WHERE digest = '${digest}')`
  await ask(`UPDATE blob_links SET leased_at = leased_at - ${ageMs} WHERE blob_id = ${itself}`)
  await ask(`UPDATE blob_queue SET queued_at = queued_at - ${ageMs} WHERE blob_id = ${itself}`)
}

/** What is held back for an upload's writer is free again, as after the time for which a turn lasts. */
export async function endTurns({ ask }: SharedStores): Promise<void> {
  await ask('UPDATE uploads SET turn_until = 0')
}
