// How an engine's fault is reported: as unavailable if a retry may help (503), otherwise as a bug (500).
import { describe, expect, test } from 'bun:test'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { Unavailable } from '../../src/oci/errors.ts'
import { startApi } from '../support/api/api-server.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { useEngines } from '../support/stores/both-engines.ts'
import { addManifest, openShelf } from '../support/stores/metadata-rows.ts'
import { damageMetadata } from '../support/stores/store-damage.ts'

const engines = useEngines('engine-faults')

describe('a fault of the engine', () => {
  engines.each(
    'that a retry cannot cure is not reported as unavailable: outside a transaction, inside one, in a look-up',
    async (engine) => {
      const open = await engine.place()
      const metadata = await SqlMetadataStore.open(open())
      const shelf = await openShelf(metadata)
      const { scope, repository } = shelf
      const breaker = open()
      await breaker.run('ALTER TABLE tags RENAME TO other', [])

      for (const asked of [
        () => metadata.tags.list(repository, undefined, 10),
        () => metadata.transaction((tables) => tables.tags.list(repository, undefined, 10)),
        async () => metadata.manifests.find(scope, { tag: 'latest' as never }),
      ]) {
        const fault = await errorOf(asked())
        expect(fault).not.toBeInstanceOf(Unavailable)
        expect(String(fault)).toContain('tags')
      }

      // And what comes after it goes on.
      await breaker.run('ALTER TABLE other RENAME TO tags', [])
      await addManifest(shelf, 'one')
      expect(await metadata.tags.list(repository, undefined, 10)).toEqual([])
    },
  )

  test('is answered with 500 and the number of the request, and with 503 only where it may pass', async () => {
    const server = await startApi()
    try {
      damageMetadata(server.dataDir, 'DROP TABLE tags')

      const reply = await server.ask('GET', '/v2/app/manifests/latest')

      expect([reply.status, reply.headers.get('retry-after')]).toEqual([500, null])
      expect(reply.json()).toMatchObject({ errors: [{ code: 'UNKNOWN', detail: { requestId: expect.any(String) } }] })
    } finally {
      await server.stop()
    }
  })
})
