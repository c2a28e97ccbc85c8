// The audit of shared stores is what the tests of replicas trust: each damage that it is there for, it must report.
import { beforeAll, describe, expect } from 'bun:test'
import { testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import {
  expectStatus,
  manifestOfBlobs,
  openSession,
  patch,
  pushBlob,
  putManifest,
} from '../support/clients/registry-client.ts'
import { startReplicas } from '../support/replicas/replicas.ts'
import { sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { auditShared, objectName } from '../support/replicas/shared-stores-audit.ts'
import { askS3 } from '../support/s3/s3-server.ts'

const encode = (text: string) => new TextEncoder().encode(text)
// Longer than an inline blob, which has no object. The config is inline.
const layer = encode('a layer that is looked at, '.repeat(1_000))
const manifest = manifestOfBlobs(encode('{}'), [layer])
const repository = 'audit/app'
const replicas = useRunning(() => startReplicas(), sharedStoresNeed)
let digest = ''
let key = ''

beforeAll(async () => {
  if (!sharedStoresNeed.isMet) return
  await pushBlob(replicas.a, repository, encode('{}'))
  digest = await pushBlob(replicas.a, repository, layer)
  await expectStatus(201, putManifest(replicas.a, repository, 'latest', manifest))
  const session = await openSession(replicas.a, repository)
  await expectStatus(202, patch(replicas.b, session, encode('unfinished'), 0))
  const sql = `SELECT storage_key AS key FROM blobs WHERE digest = '${digest}'`
  key = (await replicas.stores.ask<{ key: string }>(sql))[0]?.key ?? ''
}, 60_000)

const put = (name: string, body: Uint8Array<ArrayBuffer>) =>
  expectStatus(200, askS3(replicas.stores.s3, { method: 'PUT', target: name, body }))

/** What the audit says while the statement's effect stands. */
async function auditWith(statement: string, undo: string): Promise<readonly string[]> {
  // Rows that could never come to be so by themselves.
  await replicas.stores.ask(`SET session_replication_role = replica; ${statement}`)
  try {
    return (await auditShared(replicas.stores)).faults
  } finally {
    await replicas.stores.ask(`SET session_replication_role = replica; ${undo}`)
  }
}

describe('the audit', () => {
  testNeeding(
    sharedStoresNeed,
    'finds nothing in a sound registry with an image and an unfinished upload',
    async () => {
      expect(await auditShared(replicas.stores)).toEqual({ faults: [], strays: [], blobs: 2, manifests: 1 })
    },
  )

  testNeeding(sharedStoresNeed, 'finds an object that is gone, cut short, or of other bytes', async () => {
    const name = objectName(replicas.stores, key)
    const faults: string[] = []
    const look = async () => void faults.push(...(await auditShared(replicas.stores)).faults)
    await expectStatus(204, askS3(replicas.stores.s3, { method: 'DELETE', target: name }))
    await look()
    await put(name, layer.slice(1))
    await look()
    await put(name, layer.toReversed())
    await look()
    await put(name, layer)
    await look()

    expect(faults).toEqual([
      `the object of ${digest} is missing (404)`,
      `the object of ${digest} holds ${layer.length - 1} of ${layer.length} bytes`,
      `the object of ${digest} holds other bytes`,
    ])
  })

  testNeeding(sharedStoresNeed, 'finds an object that no row names', async () => {
    const stray = `${crypto.randomUUID()}-00c0ffee`
    await put(objectName(replicas.stores, stray), layer)
    expect(await auditShared(replicas.stores)).toMatchObject({ faults: [], strays: [stray] })
    await askS3(replicas.stores.s3, { method: 'DELETE', target: objectName(replicas.stores, stray) })
  })

  const damages: readonly (readonly [string, string, string, string])[] = [
    [
      'an entry that a manifest has lost',
      "UPDATE manifest_entries SET digest = 'gone' WHERE digest = 'DIGEST'",
      "UPDATE manifest_entries SET digest = 'DIGEST' WHERE digest = 'gone'",
      'has lost its entry DIGEST',
    ],
    [
      'an entry without the link that it needs',
      'UPDATE blob_links SET repository_id = repository_id + 1000 WHERE blob_id = BLOB',
      'UPDATE blob_links SET repository_id = repository_id - 1000 WHERE blob_id = BLOB',
      'a manifest names DIGEST without a link of its repository',
    ],
    [
      'an entry that waits for what is here',
      "UPDATE manifest_entries SET blob_id = NULL WHERE digest = 'DIGEST'",
      "UPDATE manifest_entries SET blob_id = BLOB WHERE digest = 'DIGEST'",
      'a manifest waits for DIGEST, which its repository has',
    ],
    [
      'a key that stands in two rows',
      "INSERT INTO trash (storage_key, trashed_at) VALUES ('KEY', 0)",
      "DELETE FROM trash WHERE storage_key = 'KEY'",
      'KEY stands in',
    ],
    [
      'a manifest of other bytes',
      "UPDATE manifests SET payload = payload || ' '::bytea",
      'UPDATE manifests SET payload = substring(payload FOR length(payload) - 1)',
      'holds other bytes',
    ],
    [
      'an inline blob of other bytes',
      "UPDATE blobs SET content = '[]'::bytea WHERE content IS NOT NULL",
      "UPDATE blobs SET content = '{}'::bytea WHERE content IS NOT NULL",
      'holds other bytes',
    ],
    [
      'counts that are not so',
      'UPDATE repositories SET is_image = 1 - is_image; UPDATE account_usage SET images = images + 1',
      'UPDATE repositories SET is_image = 1 - is_image; UPDATE account_usage SET images = images - 1',
      `${repository} is marked as an image: 0, and has manifests: 1`,
    ],
  ]
  for (const [what, damage, repair, words] of damages) {
    testNeeding(sharedStoresNeed, `finds ${what}`, async () => {
      const fill = (text: string) =>
        text
          .replaceAll('DIGEST', digest)
          .replaceAll('KEY', key)
          .replaceAll('BLOB', `(SELECT id FROM blobs WHERE digest = '${digest}')`)
      const faults = await auditWith(fill(damage), fill(repair))
      expect(faults.join('\n')).toContain(fill(words))
      expect((await auditShared(replicas.stores)).faults).toEqual([])
    })
  }
})
