// Tags, manifests and indexes that are pushed, moved and deleted at once: safety.md 3.7, I14 to I19.
import { describe, expect, test } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { useRunning } from '../support/basics/running.ts'
import { ask, expectStatus, manifestOfBlobs, pushBlob, putManifest } from '../support/clients/registry-client.ts'
import { startTestServer } from '../support/server/test-server.ts'
import { auditStores } from '../support/stores/store-audit.ts'

const config = new TextEncoder().encode('{}')
const indexType = 'application/vnd.oci.image.index.v1+json'
const imageType = 'application/vnd.oci.image.manifest.v1+json'

let serial = 0
const server = useRunning(() => startTestServer({ BERTH_MANIFESTS__MISSING_CONTENT: 'allow' }))

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

async function tagOf(repository: string, tag: string): Promise<string | null> {
  const answer = await ask(server, 'GET', `/v2/${repository}/manifests/${tag}`)
  const bytes = new Uint8Array(await answer.arrayBuffer())
  return answer.status === 200 ? digestOf(bytes) : null
}

function remove(repository: string, reference: string): Promise<Response> {
  return ask(server, 'DELETE', `/v2/${repository}/manifests/${reference}`)
}

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

test('after all that the stores are sound', async () => {
  expect(await auditStores(server.dataDir)).toEqual([])
})
