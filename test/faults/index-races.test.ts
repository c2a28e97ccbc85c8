// An index is pushed before its children, which are pushed and deleted at the same moment: safety.md I17.
import { expect, test } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { useRunning } from '../support/basics/running.ts'
import { ask, expectStatus, manifestOfBlobs, pushBlob, putManifest } from '../support/clients/registry-client.ts'
import { startTestServer } from '../support/server/test-server.ts'
import { auditStores } from '../support/stores/store-audit.ts'

const config = new TextEncoder().encode('{}')
const indexType = 'application/vnd.oci.image.index.v1+json'
const imageType = 'application/vnd.oci.image.manifest.v1+json'
const repository = 'races/app'

const server = useRunning(() => startTestServer({ BERTH_MANIFESTS__MISSING_CONTENT: 'allow' }))

test('the index holds the children that are there, whatever comes first', async () => {
  await pushBlob(server, repository, config)
  const children = ['a', 'b', 'c', 'd'].map((note) => manifestOfBlobs(config, [], note))
  const manifests = children.map((child) => ({ mediaType: imageType, digest: digestOf(child), size: child.length }))
  const index = new TextEncoder().encode(JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests }))
  const put = (bytes: Uint8Array, reference: string = digestOf(bytes)) =>
    expectStatus(201, putManifest(server, repository, reference, bytes))
  for (let round = 0; round < 10; round += 1) {
    const [moving = config] = children
    await Promise.all([
      ...[put(index, 'index'), ...children.map((child) => put(child))],
      ask(server, 'DELETE', `/v2/${repository}/manifests/${digestOf(moving)}`),
    ])
    expect(await auditStores(server.dataDir)).toEqual([])
  }

  for (const child of children) await put(child)
  for (const bytes of [index, ...children]) {
    await expectStatus(200, ask(server, 'GET', `/v2/${repository}/manifests/${digestOf(bytes)}`))
  }
  expect(await auditStores(server.dataDir)).toEqual([])
})
