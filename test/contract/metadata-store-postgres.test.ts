import { afterEach, describe, expect, test } from 'bun:test'
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { digestOf } from '../support/generated-bytes.ts'
import { freshUploadId, hourMs, openShelf } from '../support/metadata-rows.ts'
import { testNeeding } from '../support/needs.ts'
import { postgres } from '../support/postgres-server.ts'
import { freshKey } from '../support/stored-objects.ts'
import { limits, sharedPostgres } from '../support/test-stores.ts'
import { metadataStoreContract } from './metadata-store.ts'
import { signingKeysContract } from './signing-keys.ts'

const opened: SqlMetadataStore[] = []

afterEach(async () => {
  for (const metadata of opened.splice(0)) await metadata.close()
})

async function openPostgres(): Promise<SqlMetadataStore> {
  const url = await (await sharedPostgres()).newDatabase()
  const metadata = await SqlMetadataStore.open(new PostgresDatabase({ ...limits, url }))
  opened.push(metadata)
  return metadata
}

/** What replicas on PostgreSQL need beyond the contract: SQLite has one writer, whose commit is never in doubt. */
function doubtContract(): void {
  test('whether an upload is open is told once a transaction that finishes it is over', async () => {
    const { metadata, repository, owner } = await openShelf(await openPostgres())
    const { id } = await metadata.transaction(({ uploads }) =>
      uploads.begin(repository, owner.subject, freshUploadId(), freshKey(), 0),
    )
    const upload = await metadata.uploads.claim(owner, id, hourMs)
    if (upload === undefined) throw new Error('the turn was not free')
    const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const order: string[] = []

    const finishing = metadata.transaction(async ({ uploads }) => {
      await uploads.finish(upload, digestOf('whole'))
      begun.resolve()
      await held.promise
      order.push('finished')
    })
    await begun.promise
    const asked = metadata.uploads.isOpen(upload).then((isOpen) => order.push(`open: ${isOpen}`))
    await Bun.sleep(50)
    held.resolve()
    await Promise.all([finishing, asked])

    expect(order).toEqual(['finished', 'open: false'])
  })
}

// Where there is none, one loud skip stands for all of it, and in CI a failure.
if (postgres.isMet) {
  metadataStoreContract('PostgreSQL', openPostgres)
  describe('metadata store, PostgreSQL', doubtContract)
  signingKeysContract('PostgreSQL', async () => {
    const metadata = await openPostgres()
    return { keys: metadata.signingKeys(), reopen: () => metadata.signingKeys() }
  })
} else testNeeding(postgres, 'metadata store, PostgreSQL', async () => {})
