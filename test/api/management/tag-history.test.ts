// The history of tags: what it shows, the past of a tag, and how to restore it.
import { afterAll, expect, test } from 'bun:test'
import { pushApiImage } from '../../support/api/api-images.ts'
import { api, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { askedBy } from '../../support/api/wired-registry.ts'

const server = await startApi()
afterAll(() => server.stop())
const reader = askedBy(server, await addPerson(server, { name: 'reader', roles: ['reader'] }))

const name = 'team/app'
const tagPath = (tag: string) => `${api}/repositories/${name}/-/tags/${tag}`
const pushVersion = async (tag: string, version: string) =>
  (await pushApiImage(server, name, tag, { annotations: { version } })).digest
const restore = (tag: string, body: unknown, asking = server) =>
  asking.ask('POST', `${tagPath(tag)}/restore`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
const digestOfTag = async (tag: string, query = '') => {
  const reply = await server.ask('GET', tagPath(tag) + query)
  return reply.status === 200 ? reply.json<{ digest: string }>().digest : reply.status
}
interface Move {
  readonly from: string | null
  readonly to: string | null
  readonly movedAt: string
  readonly movedBy: string
  readonly cause: string
}
const movesOf = async (tag: string, query = '') =>
  (await server.ask('GET', `${tagPath(tag)}/history${query}`)).json<{ moves: readonly Move[] }>().moves
/** A time between the moves before and the moves after. */
const moment = async () => {
  await Bun.sleep(5)
  const time = new Date().toISOString()
  await Bun.sleep(5)
  return time
}

test('a bad push is undone, and the undo too', async () => {
  const good = await pushVersion('latest', 'good')
  const bad = await pushVersion('latest', 'bad')

  expect((await restore('latest', {})).json<unknown>()).toEqual({ name, tag: 'latest', digest: good })
  expect((await server.ask('GET', `/v2/${name}/manifests/latest`)).headers.get('docker-content-digest')).toBe(good)
  expect((await restore('latest', {})).json<{ digest: string }>().digest).toBe(bad)
  expect((await movesOf('latest')).map(({ from, to, movedBy, cause }) => [from, to, movedBy, cause])).toEqual([
    [good, bad, 'admin', 'restore'],
    [bad, good, 'admin', 'restore'],
    [good, bad, 'admin', 'push'],
    [null, good, 'admin', 'push'],
  ])
})

test('a tag can be asked for at a time, and restored to it, also after it was deleted', async () => {
  const before = await moment()
  const one = await pushVersion('v1', 'one')
  const between = await moment()
  const two = await pushVersion('v1', 'two')
  await server.ask('DELETE', `/v2/${name}/manifests/v1`)
  const after = await moment()

  expect([
    await digestOfTag('v1', `?at=${before}`),
    await digestOfTag('v1', `?at=${between}`),
    await digestOfTag('v1', `?at=${after}`),
    await digestOfTag('v1'),
  ]).toEqual([404, one, 404, 404])
  expect((await restore('v1', {})).json<{ digest: string }>().digest).toBe(two)
  expect((await restore('v1', { at: between })).json<{ digest: string }>().digest).toBe(one)
  expect((await restore('v1', { digest: two })).status).toBe(200)
  expect(await digestOfTag('v1')).toBe(two)
})

test('pages are joined by Links', async () => {
  for (const version of ['1', '2', '3']) await pushVersion('paged', version)
  const first = await server.ask('GET', `${tagPath('paged')}/history?n=2`)
  const link = /^<(.+)>; rel="next"$/.exec(first.headers.get('link') ?? '')?.[1] ?? ''
  const rest = await server.ask('GET', link)

  expect(rest.headers.get('link')).toBeNull()
  expect([...first.json<{ moves: Move[] }>().moves, ...rest.json<{ moves: Move[] }>().moves]).toEqual([
    ...(await movesOf('paged')),
  ])
  expect(await movesOf('never')).toEqual([])
})

test('a restore needs the right to push, a manifest that exists, and one target', async () => {
  const one = await pushVersion('kept', 'kept one')
  await pushVersion('kept', 'kept two')
  expect((await restore('kept', {}, reader)).status).toBe(403)
  await server.ask('DELETE', `/v2/${name}/manifests/${one}`)

  expect((await restore('kept', {})).status).toBe(404)
  expect((await restore('kept', { digest: one, at: '2030-01-31T12:00:00Z' })).status).toBe(400)
  expect((await restore('kept', { at: '2000-01-31T12:00:00Z' })).text).toContain('the history of the tag')
  expect((await reader.ask('GET', `${tagPath('kept')}/history`)).status).toBe(200)
  expect((await server.ask('GET', tagPath('kept'), { key: 'none' })).status).toBe(401)
})
