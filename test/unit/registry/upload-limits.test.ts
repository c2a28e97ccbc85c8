// The limits on open sessions hold when many requests begin at the same moment, on two servers of one database.
import { expect, test } from 'bun:test'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import type { RegistryRefusal } from '../../../src/oci/errors.ts'
import type { RegistrySettings } from '../../../src/registry/settings.ts'
import { startUpload, uploadAtOnce } from '../../../src/registry/uploads.ts'
import { digestOf } from '../../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { before } from '../../support/clocks/gates.ts'
import { type Engine, useEngines } from '../../support/stores/both-engines.ts'
import { bodyOf, openWorld, scopeOf } from '../../support/stores/use-case-world.ts'

const temporaryFolder = useTemporaryFolders('upload-limits')
const engines = useEngines('upload-limits')
const limits = { uploadsPerRepositoryMax: 8, uploadsPerPrincipalMax: 5 }

async function openServers(engine: Engine, settings: Partial<RegistrySettings>) {
  const world = await openWorld(temporaryFolder(), settings)
  const open = await engine.place()
  const one = { ...world, metadata: await SqlMetadataStore.open(open()) }
  // SQLite has one server.
  const other = engine === engines.sqlite ? one : { ...world, metadata: await SqlMetadataStore.open(open()) }
  const scope = await scopeOf(one)
  // The first session makes the repository, so that what follows does not wait for its row.
  await startUpload(one, { ...scope, subject: 'first' }, 'free')
  const begin = (subject: string, at: number) =>
    startUpload(at % 2 ? one : other, { ...scope, subject }, 'free').then(
      () => undefined,
      (error: unknown) => error as RegistryRefusal,
    )
  return { one, scope, begin }
}

engines.each('forty requests at once open exactly as many sessions as each limit leaves', async (engine) => {
  const { one, scope, begin } = await openServers(engine, limits)
  const burst = async (subject: string) => {
    const faults = await Promise.all(Array.from({ length: 40 }, (_, at) => begin(subject, at)))
    const refused = faults.filter((fault) => fault !== undefined)
    return { opened: 40 - refused.length, details: new Set(refused.map(({ details }) => JSON.stringify(details))) }
  }

  expect(await burst('alice')).toEqual({ opened: 5, details: new Set(['[{"max":5,"of":"caller"}]']) })
  expect(await burst('bob')).toEqual({ opened: 2, details: new Set(['[{"max":8,"of":"repository"}]']) })

  // A blob in one request opens no session, so it is not counted.
  const bytes = new TextEncoder().encode('at once')
  await uploadAtOnce(one, { ...scope, subject: 'alice' }, digestOf(bytes), bodyOf(bytes))
})

test('a session far below the limits does not wait for the others of its repository', async () => {
  const world = await openWorld(temporaryFolder(), { uploadsPerRepositoryMax: 1_000, uploadsPerPrincipalMax: 100 })
  let locks = 0
  const lock = async () => {
    locks += 1
  }
  const counted = { ...world, metadata: before(world.metadata, 'repositories', 'lock', lock) }
  const owner = { ...(await scopeOf(world)), subject: 'alice' }

  for (let opened = 0; opened < 51; opened += 1) await startUpload(counted, owner, 'free')

  // The last one finds that half of the limit is open.
  expect(locks).toBe(1)
})
