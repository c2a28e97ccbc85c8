// Two accounts that use the same names and the same blobs: each loses only its own. What one learns of the other is held
// by nothing-to-guess.test.ts, and the statistics of both by statistics-model.test.ts.
import { afterAll, describe, expect, test } from 'bun:test'
import { digestOf, imageOf, indexOf, pushApiImage, pushBlob, putManifest } from '../../support/api/api-images.ts'
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

test('each has its own image under the same tag', async () => {
  const texts = [
    (await one.ask('GET', '/v2/team/app/manifests/v1')).text,
    (await other.ask('GET', '/v2/team/app/manifests/v1')).text,
  ]

  expect(texts).toEqual([ones.image.bytes, others.image.bytes])
  expect(texts[0]).not.toBe(texts[1])
})

describe('what one does leaves the other alone', () => {
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
    // The first collection removes the copies that an undelete would need. Their blobs can be collected a lease later.
    await collect(world)
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
