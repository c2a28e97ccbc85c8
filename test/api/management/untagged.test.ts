// The list of untagged manifests, and the policy that removes them.
import { afterAll, expect, test } from 'bun:test'
import { indexOf, pushApiImage, putManifest } from '../../support/api/api-images.ts'
import { api, startApi } from '../../support/api/api-server.ts'

const server = await startApi({ BERTH_GARBAGE__UNTAGGED: '7d', BERTH_GARBAGE__TAG_HISTORY: '10d' })
const forEver = await startApi()
afterAll(() => Promise.all([server.stop(), forEver.stop()]))

const name = 'team/app'
const path = `${api}/repositories/${name}/-/untagged-manifests`
interface Listed {
  readonly digest: string
  readonly wasTagged: boolean
  readonly since: string
  readonly removedAt: string | null
}
const listOf = async (query = '', asking = server) =>
  (await asking.ask('GET', path + query)).json<{ manifests: readonly Listed[] }>().manifests
const daysOf = ({ since, removedAt }: Listed) =>
  removedAt === null ? null : (Date.parse(removedAt) - Date.parse(since)) / 86_400_000

test('has what lost its tag and what never had one, with the time when the policy removes it', async () => {
  const old = await pushApiImage(server, name, 'latest', { config: '{"version":1}' })
  await pushApiImage(server, name, 'latest', { config: '{"version":2}' })
  const child = await pushApiImage(server, name, 'child', { config: '{"child":1}' })
  await server.ask('DELETE', `/v2/${name}/manifests/child`)
  const index = indexOf([child.descriptor])
  await putManifest(server, name, index.digest, index)

  const listed = await listOf()
  expect(listed.map((manifest) => [manifest.digest, manifest.wasTagged, daysOf(manifest)])).toEqual([
    [old.digest, true, 10],
    [index.digest, false, 7],
  ])
  const first = await server.ask('GET', `${path}?n=1`)
  const link = /^<(.+)>; rel="next"$/.exec(first.headers.get('link') ?? '')?.[1] ?? ''
  const second = await server.ask('GET', link)
  expect(second.json<{ manifests: Listed[] }>().manifests.map(({ digest }) => digest)).toEqual([index.digest])
  expect(second.headers.get('link')).toBeNull()

  await putManifest(server, name, 'all', index)
  expect((await listOf()).map(({ digest }) => digest)).toEqual([old.digest])
})

test('says without a policy that a manifest is never removed', async () => {
  await pushApiImage(forEver, name, 'latest', { config: '{"version":1}' })
  await pushApiImage(forEver, name, 'latest', { config: '{"version":2}' })

  expect((await listOf('', forEver)).map(daysOf)).toEqual([null])
})
