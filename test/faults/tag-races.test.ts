// Tags, manifests and indexes that are pushed, moved and deleted at once: safety.md 3.7, I14 to I19.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import {
  ask,
  expectStatus,
  jsonOf,
  manifestOfBlobs,
  pushBlob,
  putManifest,
} from '../support/clients/registry-client.ts'
import { startTestServer, type TestServer } from '../support/server/test-server.ts'
import { auditStores } from '../support/stores/store-audit.ts'

const config = new TextEncoder().encode('{}')
const indexType = 'application/vnd.oci.image.index.v1+json'
const imageType = 'application/vnd.oci.image.manifest.v1+json'

let server: TestServer
let serial = 0

beforeAll(async () => {
  server = await startTestServer({ BERTH_MANIFESTS__MISSING_CONTENT: 'allow' })
})

afterAll(async () => {
  await server.stop()
})

async function freshRepository(): Promise<string> {
  serial += 1
  await pushBlob(server, `races/${serial}`, config)
  return `races/${serial}`
}

function image(note: string): Uint8Array {
  return manifestOfBlobs(config, [], note)
}

function indexOf(children: readonly Uint8Array[]): Uint8Array {
  const manifests = children.map((child) => ({ mediaType: imageType, digest: digestOf(child), size: child.length }))
  return new TextEncoder().encode(JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests }))
}

function referrerTo(subject: Uint8Array): Uint8Array {
  const manifest = JSON.parse(new TextDecoder().decode(image('a referrer')))
  const descriptor = { mediaType: imageType, digest: digestOf(subject), size: subject.length }
  return new TextEncoder().encode(JSON.stringify({ ...manifest, subject: descriptor }))
}

async function tagOf(repository: string, tag: string): Promise<string | null> {
  const answer = await ask(server, 'GET', `/v2/${repository}/manifests/${tag}`)
  const bytes = new Uint8Array(await answer.arrayBuffer())
  return answer.status === 200 ? digestOf(bytes) : null
}

function remove(repository: string, reference: string): Promise<Response> {
  return ask(server, 'DELETE', `/v2/${repository}/manifests/${reference}`)
}

async function tagsOf(repository: string): Promise<string[]> {
  return (await jsonOf<{ tags: string[] }>(ask(server, 'GET', `/v2/${repository}/tags/list`))).tags
}

describe('I14: a manifest is deleted by its digest while a tag is put to it', () => {
  test('the tag has its manifest, or there is neither', async () => {
    const repository = await freshRepository()
    for (let round = 0; round < 20; round += 1) {
      const bytes = image(`round ${round}`)
      await expectStatus(201, putManifest(server, repository, 'old', bytes))

      await Promise.all([remove(repository, digestOf(bytes)), putManifest(server, repository, 'new', bytes)])

      const stands = await tagOf(repository, digestOf(bytes))
      expect(await tagOf(repository, 'new')).toBe(stands)
      expect((await tagsOf(repository)).includes('new')).toBe(stands !== null)
    }
  })
})

describe('I15: a tag is put to two manifests while others read it', () => {
  test('a reader sees the old one or one of the new ones, whole, and a write that was acknowledged', async () => {
    const repository = await freshRepository()
    const images = ['old', 'one', 'two'].map(image)
    const digests = new Set(images.map((bytes) => digestOf(bytes)))
    await expectStatus(201, putManifest(server, repository, 'latest', images[0] ?? config))
    const seen = new Set<string | null>()
    let isOver = false
    const read = async () => {
      while (!isOver) seen.add(await tagOf(repository, 'latest'))
    }
    const readers = [read(), read(), read()]

    for (let round = 0; round < 20; round += 1) {
      await Promise.all([1, 2].map((which) => putManifest(server, repository, 'latest', images[which] ?? config)))
      const alone = images[round % 3] ?? config
      await expectStatus(201, putManifest(server, repository, 'latest', alone))
      expect(await tagOf(repository, 'latest')).toBe(digestOf(alone))
    }
    isOver = true
    await Promise.all(readers)

    expect([...seen].filter((digest) => digest === null || !digests.has(digest as never))).toEqual([])
  })
})

describe('I16: a tag is deleted and put at once while others list', () => {
  test('it is there in the end exactly if it is listed and can be pulled', async () => {
    const repository = await freshRepository()
    const bytes = image('one')
    await expectStatus(201, putManifest(server, repository, 'steady', bytes))
    for (let round = 0; round < 20; round += 1) {
      const [, , lists] = await Promise.all([
        remove(repository, 'moving'),
        putManifest(server, repository, 'moving', bytes),
        Promise.all([tagsOf(repository), tagsOf(repository)]),
      ])

      for (const list of lists) expect(['steady', 'moving,steady']).toContain(list.toSorted().join(','))
      const isThere = (await tagOf(repository, 'moving')) !== null
      expect((await tagsOf(repository)).includes('moving')).toBe(isThere)
    }
    expect(await tagOf(repository, 'steady')).toBe(digestOf(bytes))
  })
})

describe('I17: an index comes before its children', () => {
  test('children that come in parallel are all held by it', async () => {
    const repository = await freshRepository()
    const children = ['a', 'b', 'c', 'd'].map(image)
    const index = indexOf(children)

    await Promise.all(
      [index, ...children].map((bytes) => expectStatus(201, putManifest(server, repository, digestOf(bytes), bytes))),
    )

    expect(await auditStores(server.dataDir)).toEqual([])
    for (const child of children) expect(await tagOf(repository, digestOf(child))).toBe(digestOf(child))
  })

  test('a child that is deleted in between is waited for, and held again when it comes back', async () => {
    const repository = await freshRepository()
    const child = image('child')
    const index = indexOf([child])
    for (let round = 0; round < 10; round += 1) {
      await Promise.all([
        putManifest(server, repository, 'index', index),
        putManifest(server, repository, digestOf(child), child),
        remove(repository, digestOf(child)),
      ])
      expect(await auditStores(server.dataDir)).toEqual([])
    }

    await expectStatus(201, putManifest(server, repository, digestOf(child), child))
    expect(await tagOf(repository, 'index')).toBe(digestOf(index))
  })
})

describe('I19: a subject comes after its referrer, and goes before it', () => {
  test('the list names only what can be pulled', async () => {
    const repository = await freshRepository()
    const subject = image('subject')
    const referrer = referrerTo(subject)
    const list = async (): Promise<string[]> => {
      const asked = ask(server, 'GET', `/v2/${repository}/referrers/${digestOf(subject)}`)
      return (await jsonOf<{ manifests: { digest: string }[] }>(asked)).manifests.map((entry) => entry.digest)
    }

    await expectStatus(201, putManifest(server, repository, digestOf(referrer), referrer))
    expect(await list()).toEqual([digestOf(referrer)])
    await expectStatus(201, putManifest(server, repository, 'subject', subject))
    expect(await list()).toEqual([digestOf(referrer)])
    await expectStatus(202, remove(repository, digestOf(subject)))
    expect(await list()).toEqual([digestOf(referrer)])

    const [, ...lists] = await Promise.all([remove(repository, digestOf(referrer)), list(), list(), list()])
    for (const listed of lists) expect(listed.length).toBeLessThanOrEqual(1)
    expect(await list()).toEqual([])
  })
})

test('after all that the stores are sound', async () => {
  expect(await auditStores(server.dataDir)).toEqual([])
})
