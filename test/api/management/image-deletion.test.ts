// Deleting tags, images and repositories with a preview, and undeleting them.
import { afterAll, expect, test } from 'bun:test'
import { indexOf, pushApiImage, putManifest } from '../../support/api/api-images.ts'
import { api, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { askedBy } from '../../support/api/wired-registry.ts'

const server = await startApi({ BERTH_GARBAGE__UNDELETE: '2d' })
afterAll(() => server.stop())
const limited = async (name: string, rights: ('pull' | 'push' | 'delete')[]) =>
  askedBy(server, await addPerson(server, { name, roles: ['admin'], limits: { rights } }))
const remover = await limited('remover', ['pull', 'delete'])
const pusher = await limited('pusher', ['pull', 'push'])

const base = (name: string) => `${api}/repositories/${name}`
interface Report {
  readonly dryRun: boolean
  readonly tags: readonly { readonly tag: string }[]
  readonly manifests: readonly { readonly digest: string; readonly role: string }[]
  readonly remaining: Readonly<Record<string, readonly unknown[]>>
  readonly bytes: { readonly freedLater: number; readonly freedAt: string | null }
  readonly undeletableUntil: string | null
}
const remove = async (path: string, asking = server) => (await asking.ask('DELETE', path)).json<Report>()
const statusOf = async (name: string, reference: string) =>
  (await server.ask('GET', `/v2/${name}/manifests/${reference}`)).status
interface Deleted {
  readonly digest: string
  readonly tags: readonly string[]
  readonly cause: string
  readonly deletedBy: string
  readonly deletedAt: string
  readonly undeletableUntil: string
}
const deletedOf = async (name: string, query = '') =>
  (await server.ask('GET', `${base(name)}/-/deleted-manifests${query}`)).json<{ manifests: Deleted[] }>().manifests
const undelete = (name: string, digest: string, asking = server) =>
  asking.ask('POST', `${base(name)}/-/manifests/${digest}/undelete`)

test('an image is deleted as the dry run told, and comes back with its tags and companions', async () => {
  const name = 'team/app'
  const child = await pushApiImage(server, name, 'child', { config: '{"child":1}', layers: ['a layer of the child'] })
  await server.ask('DELETE', `/v2/${name}/manifests/child`)
  const index = indexOf([child.descriptor])
  for (const tag of ['latest', '1.0']) await putManifest(server, name, tag, index)
  const signature = await pushApiImage(server, name, `sha256-${index.digest.slice(7)}.sig`, { config: '{"sig":1}' })
  const sbom = await pushApiImage(server, name, 'sbom', { config: '{"sbom":1}', subject: index.descriptor })
  const path = `${base(name)}/-/manifests/${index.digest}`

  const told = await remove(`${path}?companions=true&dryRun=true`, remover)
  expect(told.tags.map(({ tag }) => tag)).toEqual(['1.0', 'latest', 'sbom', `sha256-${index.digest.slice(7)}.sig`])
  expect(told.manifests.map(({ digest, role }) => `${role} ${digest}`).sort()).toEqual(
    [
      `image ${index.digest}`,
      `child ${child.digest}`,
      `referrer ${sbom.digest}`,
      `companion tag ${signature.digest}`,
    ].sort(),
  )
  expect(told.bytes.freedLater).toBe('{"child":1}a layer of the child{"sig":1}{"sbom":1}'.length)
  expect(await statusOf(name, 'latest')).toBe(200)
  const done = await remove(`${path}?companions=true`, remover)
  expect({ ...done, bytes: done.bytes.freedLater, undeletableUntil: null }).toEqual({
    ...told,
    dryRun: false,
    bytes: told.bytes.freedLater,
    undeletableUntil: null,
  } as never)
  expect(await statusOf(name, 'latest')).toBe(404)

  const listed = await deletedOf(name)
  expect(listed.map(({ digest }) => digest).sort()).toEqual(done.manifests.map(({ digest }) => digest).sort())
  const [first] = listed.filter(({ digest }) => digest === index.digest)
  expect([first?.tags, first?.cause, first?.deletedBy]).toEqual([['1.0', 'latest'], 'manifest deleted', 'remover'])
  expect(Date.parse(first?.undeletableUntil ?? '') - Date.parse(first?.deletedAt ?? '')).toBe(2 * 86_400_000)
  expect((await deletedOf(name, '?n=1')).length).toBe(1)

  expect((await undelete(name, index.digest, remover)).status).toBe(403)
  const undeleted = (await undelete(name, index.digest, pusher)).json<{ manifests: string[]; tags: string[] }>()
  expect([undeleted.manifests, undeleted.tags]).toEqual([
    [child.digest, index.digest],
    ['1.0', 'latest'],
  ])
  expect([await statusOf(name, 'latest'), await statusOf(name, child.digest)]).toEqual([200, 200])
  expect((await undelete(name, index.digest)).status).toBe(404)
  expect((await server.ask('DELETE', `${base(name)}/-/deleted-manifests/${sbom.digest}`)).status).toBe(204)
  expect((await undelete(name, sbom.digest)).status).toBe(404)
})

test('a deletion over /v2/ can be undone; a tag that was pushed since stays', async () => {
  const name = 'team/v2'
  const one = await pushApiImage(server, name, 'latest', { config: '{"one":1}' })
  await putManifest(server, name, 'stable', one)
  expect((await server.ask('DELETE', `/v2/${name}/manifests/${one.digest}`)).status).toBe(202)
  const two = await pushApiImage(server, name, 'latest', { config: '{"two":2}' })

  expect((await undelete(name, one.digest)).json<unknown>()).toEqual({
    name,
    manifests: [one.digest],
    tags: ['stable'],
    keptTags: ['latest'],
  })
  expect((await server.ask('GET', `/v2/${name}/manifests/latest`)).headers.get('docker-content-digest')).toBe(
    two.digest,
  )
})

test('tags go by pattern or by name; a request that selects none deletes nothing', async () => {
  const name = 'team/tags'
  for (const tag of ['pr-1', 'pr-2', 'v1', 'v2']) await pushApiImage(server, name, tag, { config: `{"tag":"${tag}"}` })
  const tags = `${base(name)}/-/tags`
  const namesOf = async (query: string) => (await remove(tags + query)).tags.map(({ tag }) => tag)

  for (const query of ['', '?match=', '?match=[', '?match=v*&tag=v1', '?match=v*&dryRun=yes', '?tag=a/b']) {
    expect([query, (await server.ask('DELETE', tags + query)).status]).toEqual([query, 400])
  }
  expect((await server.ask('DELETE', `${tags}?match=v*`, { key: 'none' })).status).toBe(401)
  expect((await pusher.ask('DELETE', `${tags}?match=v*`)).status).toBe(403)
  expect(await namesOf('?match=pr-*&images=true')).toEqual(['pr-1', 'pr-2'])
  expect((await deletedOf(name)).map(({ cause }) => cause)).toEqual(['tags deleted', 'tags deleted'])
  expect(await namesOf('?tag=v2&tag=none')).toEqual(['v2'])
  expect((await server.ask('DELETE', `${tags}/v2`)).status).toBe(404)
  expect((await remove(`${tags}/v1?dryRun=true`)).remaining['untagged']).toHaveLength(1)
  expect(await statusOf(name, 'v1')).toBe(200)
})

test('immutable tags stay with their images, unless an operator deletes them', async () => {
  const name = 'fixed/app'
  const policy = { rules: [{ repositories: ['fixed/*'], tags: ['v*'] }] }
  const headers = { 'content-type': 'application/json' }
  await server.ask('PUT', `${api}/policies/immutable-tags`, { headers, body: JSON.stringify(policy) })
  const fixed = await pushApiImage(server, name, 'v1', { config: '{"fixed":1}' })
  const loose = await pushApiImage(server, name, 'dev', { config: '{"loose":1}' })

  const refused = await remover.ask('DELETE', `${base(name)}/-/tags/v1`)
  expect([refused.status, refused.text.includes('immutable')]).toEqual([409, true])
  expect((await remover.ask('DELETE', `${base(name)}/-/manifests/${fixed.digest}`)).status).toBe(409)
  const report = await remove(base(name), remover)
  expect(report.manifests.map(({ digest }) => digest)).toEqual([loose.digest])
  expect(report.remaining['immutable']).toEqual([{ tag: 'v1', digest: fixed.digest }])
  expect((await remove(base(name))).tags.map(({ tag }) => tag)).toEqual(['v1'])
})

test('a repository goes and comes back as a whole', async () => {
  const name = 'team/whole/app'
  const early = await pushApiImage(server, name, 'early', { config: '{"early":1}' })
  await server.ask('DELETE', `/v2/${name}/manifests/${early.digest}`)
  for (const tag of ['a', 'b']) await pushApiImage(server, name, tag, { config: `{"of":"${tag}"}` })
  const catalog = async () => (await server.ask('GET', '/v2/_catalog')).json<{ repositories: string[] }>().repositories

  expect((await remove(base(name), remover)).tags.map(({ tag }) => tag)).toEqual(['a', 'b'])
  expect(await catalog()).not.toContain(name)
  const undeleted = (await pusher.ask('POST', `${base(name)}/-/undelete`)).json<Record<string, unknown>>()
  expect([undeleted['tags'], undeleted['refused'], undeleted['hasMore']]).toEqual([['b', 'a'], [], false])
  expect(await catalog()).toContain(name)
  expect((await deletedOf(name)).map(({ digest }) => digest)).toEqual([early.digest])
  expect((await server.ask('DELETE', base('team/none'))).status).toBe(404)
})
