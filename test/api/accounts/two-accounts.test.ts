// Two accounts that use the same names and the same blobs: each sees, changes and loses only its own.
import { afterAll, describe, expect, test } from 'bun:test'
import {
  digestOf,
  imageOf,
  indexOf,
  pushApiImage,
  pushBlob,
  putManifest,
  startUpload,
} from '../../support/api/api-images.ts'
import { type ApiServer, api, startApi } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import { askedBy } from '../../support/api/wired-registry.ts'
import { auditStores, countRows } from '../../support/stores/store-audit.ts'
import { collect, grow, openWorld } from '../../support/stores/use-case-world.ts'

const server = await startApi()
afterAll(() => server.stop())
const one = askedBy(server, await addPerson(server, { name: 'one', roles: ['admin'], account: 'account-one' }))
const other = askedBy(server, await addPerson(server, { name: 'other', roles: ['admin'], account: 'account-other' }))

const config = (owner: string) => JSON.stringify({ owner })
const common = { layers: ['a common layer'] }

/** The same repositories, tags and layers; only the configs, and what is signed with, tell whose they are. */
async function fill(server: ApiServer, owner: string) {
  const image = await pushApiImage(server, 'team/app', 'v1', { ...common, config: config(owner) })
  const same = await pushApiImage(server, 'team/app', 'same', common)
  const index = indexOf([image.descriptor, same.descriptor])
  await putManifest(server, 'team/app', 'all', index)
  await pushApiImage(server, 'team/app', 'signed', {
    config: config(`${owner} signs`),
    subject: same.descriptor,
    artifactType: 'a/signature',
  })
  await pushApiImage(server, `only/${owner}`, 'v1', common)
  return { image, same, index }
}

const ones = await fill(one, 'one')
const others = await fill(other, 'other')

/** All that can be pulled of what an account was filled with. */
async function lookAround(server: ApiServer, { image, same, index }: typeof ones, owner: string) {
  const paths = [
    '/v2/_catalog',
    '/v2/team/app/tags/list',
    ...['v1', 'same', 'all', 'signed', image.digest, same.digest, index.digest].map(
      (reference) => `/v2/team/app/manifests/${reference}`,
    ),
    `/v2/team/app/referrers/${same.digest}`,
    `/v2/team/app/blobs/${digestOf('a common layer')}`,
    `/v2/team/app/blobs/${digestOf(config(owner))}`,
    `/v2/only/${owner}/manifests/v1`,
    `${api}/stats`,
  ]
  const replies = await Promise.all(paths.map((path) => server.ask('GET', path)))
  return replies.map(({ status, text }, at) => [paths[at], status, text])
}

const before = await lookAround(other, others, 'other')

test('what is compared is all there', () => {
  expect(before.map(([, status]) => status)).toEqual(before.map(() => 200))
})

describe('each sees its own', () => {
  test('under the same tag another image', async () => {
    const [mine, theirs] = [
      await one.ask('GET', '/v2/team/app/manifests/v1'),
      await other.ask('GET', '/v2/team/app/manifests/v1'),
    ]

    expect([mine.text, theirs.text]).toEqual([ones.image.bytes, others.image.bytes])
    expect(mine.text).not.toBe(theirs.text)
  })

  test("and nothing of the other's: catalog, manifests by digest, blobs, referrers", async () => {
    const catalog = (await one.ask('GET', '/v2/_catalog')).json()
    const referrers = (await one.ask('GET', `/v2/team/app/referrers/${ones.same.digest}`)).json<{
      manifests: unknown[]
    }>()
    const statuses = await Promise.all(
      [
        `manifests/${others.image.digest}`,
        `manifests/${others.index.digest}`,
        `blobs/${digestOf(config('other'))}`,
      ].map(async (rest) => (await one.ask('GET', `/v2/team/app/${rest}`)).status),
    )

    expect(catalog).toEqual({ repositories: ['only/one', 'team/app'] })
    expect(referrers.manifests).toHaveLength(1)
    expect(statuses).toEqual([404, 404, 404])
  })

  test('mounts only from its own repositories', async () => {
    const digest = await pushBlob(other, 'team/app', 'only the other has this')
    const mount = (server: ApiServer, query: string) =>
      server.ask('POST', `/v2/target/blobs/uploads/?mount=${digest}${query}`)
    const replies = [await mount(one, '&from=team/app'), await mount(one, ''), await mount(other, '&from=team/app')]

    expect(replies.map(({ status }) => status)).toEqual([202, 202, 201])
    expect((await one.ask('HEAD', `/v2/target/blobs/${digest}`)).status).toBe(404)
  })

  test("cannot name the other's blobs or manifests in a manifest", async () => {
    await pushBlob(other, 'team/app', 'a layer of the other')
    const image = imageOf({ ...common, layers: ['a layer of the other'] })

    expect((await putManifest(one, 'team/app', 'stolen', image)).status).toBe(400)
    expect((await putManifest(one, 'team/app', 'stolen', indexOf([others.image.descriptor]))).status).toBe(400)
  })
})

describe('upload sessions', () => {
  test.each([
    ['GET', ''],
    ['HEAD', ''],
    ['PATCH', ''],
    ['PUT', `?digest=${digestOf('begun ended')}`],
    ['DELETE', ''],
  ])('of the other are unknown: %s', async (method, query) => {
    const session = await startUpload(other, 'team/app')
    await other.ask('PATCH', session, { body: 'begun' })
    const question = method === 'PATCH' || method === 'PUT' ? { body: ' ended' } : {}
    const reply = await one.ask(method, session + query, question)

    expect(reply.status).toBe(404)
    if (method !== 'HEAD') expect(reply.json()).toMatchObject({ errors: [{ code: 'BLOB_UPLOAD_UNKNOWN' }] })
    const left = await other.ask('GET', session)
    expect([left.status, left.headers.get('range')]).toEqual([204, '0-4'])
    await other.ask('DELETE', session)
  })
})

describe('what one does leaves the other alone', () => {
  test('disabling', async () => {
    await one.ask('POST', `${api}/disable`)
    const statuses = [(await one.ask('GET', '/v2/_catalog')).status, (await other.ask('GET', '/v2/_catalog')).status]
    await one.ask('POST', `${api}/enable`)

    expect(statuses).toEqual([403, 200])
  })

  test('statistics', async () => {
    const images = async (server: ApiServer) =>
      (await server.ask('GET', `${api}/stats`)).json<{ imageCount: number }>().imageCount
    const counts = [await images(one), await images(other)]
    await pushApiImage(one, 'one/more', 'v1')

    expect([await images(one), await images(other)]).toEqual([(counts[0] ?? 0) + 1, counts[1] ?? 0])
  })

  test('deleting everything, and collecting it', async () => {
    for (const tag of ['all', 'signed']) await one.ask('DELETE', `/v2/team/app/manifests/${tag}`)
    const signature = imageOf({
      config: config('one signs'),
      subject: ones.same.descriptor,
      artifactType: 'a/signature',
    })
    for (const { digest } of [ones.index, signature, ones.image, ones.same]) {
      expect((await one.ask('DELETE', `/v2/team/app/manifests/${digest}`)).status).toBe(202)
    }
    expect((await one.ask('DELETE', `/v2/team/app/blobs/${digestOf('a common layer')}`)).status).toBe(202)
    expect((await one.ask('DELETE', `/v2/only/one/manifests/v1`)).status).toBe(202)

    const world = await openWorld(server.dataDir)
    grow(world)
    const collected = await collect(world)
    await world.metadata.close()

    expect(collected.blobs).toBeGreaterThan(0)
    expect(await lookAround(other, others, 'other')).toEqual(before)
    expect(await auditStores(server.dataDir)).toEqual([])
  })

  test('collecting stops for the one that is disabled, and goes on for the other', async () => {
    for (const server of [one, other]) await pushBlob(server, 'idle', 'nobody names this')
    const owners = () =>
      ['account-one', 'account-other'].map((name) =>
        countRows(
          server.dataDir,
          'blobs',
          `digest = '${digestOf('nobody names this')}' AND account_id = (SELECT id FROM accounts WHERE name = '${name}')`,
        ),
      )
    expect(owners()).toEqual([1, 1])
    const world = await openWorld(server.dataDir)
    grow(world)
    await one.ask('POST', `${api}/disable`)
    await collect(world)
    const whileDisabled = owners()
    await one.ask('POST', `${api}/enable`)
    // What was met while the account was disabled has gone to the queue's end, and is met again when a lease is over.
    grow(world)
    await collect(world)
    await world.metadata.close()

    expect([whileDisabled, owners()]).toEqual([
      [1, 0],
      [0, 0],
    ])
  })
})
