// Which requests count as pulls. They are written in the background, and at the latest when the server stops.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import { pushApiImage } from '../../support/api/api-images.ts'
import { startApi } from '../../support/api/api-server.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { openShelf, tagged } from '../../support/stores/metadata-rows.ts'

const temporaryFolder = useTemporaryFolders('last-pulls')

test('a GET by tag or digest and a HEAD by tag count; a HEAD by digest, a push and a list do not', async () => {
  const folder = temporaryFolder()
  const settings = { BERTH_DATA_DIR: folder }
  const server = await startApi(settings)
  const path = '/v2/team/app/manifests'
  const { digest } = await pushApiImage(server, 'team/app', 'got', { config: '{"got":1}' })
  const other = await pushApiImage(server, 'team/app', 'headed', { config: '{"headed":1}' })
  const unused = await pushApiImage(server, 'team/app', 'unused', { config: '{"unused":1}' })
  const before = Date.now()
  for (let times = 0; times < 3; times += 1) await server.ask('GET', `${path}/got`)
  await server.ask('GET', `${path}/headed`, { headers: { 'if-none-match': `"${other.digest}"` } })
  await server.ask('HEAD', `${path}/headed`)
  await server.ask('HEAD', `${path}/${unused.digest}`)
  await server.ask('GET', '/v2/team/app/tags/list')
  await server.ask('GET', `${path}/missing`)
  await server.stop()

  const store = await SqlMetadataStore.open(new SqliteDatabase(join(folder, 'metadata.sqlite')))
  const { repository } = await openShelf(store, (await store.users.find('admin'))?.account, 'team/app')
  const found = await store.pulls.findOfTags(repository, ['got', 'headed', 'unused'].map(tagged))
  const ids = await store.transaction(({ manifests }) =>
    manifests.lockByDigests(repository, [digest, other.digest, unused.digest]),
  )
  const manifests = await store.pulls.findOfManifests(repository, [...ids.values()])
  await store.close()

  expect([...found.keys()].sort()).toEqual(['got', 'headed'])
  expect([...manifests.keys()].sort()).toEqual([ids.get(digest) ?? 0, ids.get(other.digest) ?? 0].sort())
  for (const time of found.values()) expect(Math.abs(time - before)).toBeLessThan(60_000)
})
