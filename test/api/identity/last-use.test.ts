// When a key was used last: noted beside the requests, and written now and then.
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import { type Built, buildApplication } from '../../../src/app/build.ts'
import { readConfig } from '../../../src/app/config.ts'
import { Pipeline } from '../../../src/http/pipeline.ts'
import { openLog } from '../../../src/lib/log.ts'
import type { MetadataStore } from '../../../src/ports/metadata-store.ts'
import { identity } from '../../support/api/api-server.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { testApiKey } from '../../support/basics/test-project.ts'

const temporaryFolder = useTemporaryFolders('last-use')

async function openServer() {
  const dataDir = temporaryFolder()
  const settings = { BERTH_DATA_DIR: dataDir, BERTH_IDENTITY__ADMIN_API_KEY: testApiKey }
  const built = await buildApplication(readConfig(undefined, settings))
  const pipeline = new Pipeline(built.app, openLog({ format: 'json', level: 'silent' }))
  const statusWith = async (key: string) => {
    const headers = { host: 'h', 'x-api-key': key }
    return (await pipeline.handle(new Request(`http://h${identity}/me`, { headers }))).status
  }
  return { dataDir, built, statusWith }
}

async function lastUses({ users, apiKeys }: Pick<MetadataStore, 'users' | 'apiKeys'>) {
  const admin = await users.find('admin')
  return (await apiKeys.list(admin?.id ?? 0)).map(({ lastUsedAt }) => lastUsedAt)
}

const lastUsesOf = ({ app }: Built) => lastUses(app.metadata)

describe('the last use of a key', () => {
  test('is unknown before the first, and there when the uses are written', async () => {
    const { built, statusWith } = await openServer()
    expect(await lastUsesOf(built)).toEqual([undefined])
    expect(await statusWith(testApiKey)).toBe(200)
    expect(await lastUsesOf(built)).toEqual([undefined])
    await built.uses.flush()
    const [at = 0] = await lastUsesOf(built)
    await built.close()

    expect(Math.abs(at - Date.now())).toBeLessThan(60_000)
  })

  test('does not change with a wrong key', async () => {
    const { built, statusWith } = await openServer()
    expect(await statusWith(`${testApiKey}x`)).toBe(401)
    await built.uses.flush()

    expect(await lastUsesOf(built)).toEqual([undefined])
    await built.close()
  })

  test('is written when the server stops', async () => {
    const { dataDir, built, statusWith } = await openServer()
    await statusWith(testApiKey)
    await built.close()
    const store = await SqlMetadataStore.open(new SqliteDatabase(join(dataDir, 'metadata.sqlite')))
    const uses = await lastUses(store)
    await store.close()

    expect(uses).toEqual([expect.any(Number)])
  })
})
