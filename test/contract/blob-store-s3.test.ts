// The contract of the blob store on S3: the stub in this process, or the server that TEST_S3 names.
import { afterAll, afterEach, expect } from 'bun:test'
import { usualPlan } from '../../src/adapters/blobs-s3/part-buffers.ts'
import type { S3BlobStore, S3BlobStoreSettings } from '../../src/adapters/blobs-s3/s3-blob-store.ts'
import { testNeeding } from '../support/basics/needs.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { openS3Store, s3StoreSettings, smallPlan } from '../support/s3/s3-store.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { sharedS3, testS3Need } from '../support/s3/test-s3.ts'
import { auditWrites } from '../support/s3-faults/s3-audit.ts'
import { tinyPlan } from '../support/s3-faults/s3-world.ts'
import { blobStoreContract, sharedBlobStoreContract } from './blob-store.ts'

const temporaryFolder = useTemporaryFolders('s3')
const opened: S3BlobStore[] = []

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
})

function openStore(settings: S3BlobStoreSettings): S3BlobStore {
  const store = openS3Store(settings)
  opened.push(store)
  return store
}

const kinds: readonly (readonly [string, Partial<S3BlobStoreSettings>])[] = [
  ['as it is usually set', { plan: usualPlan }],
  ['pieces of all sizes, in memory and in files', { plan: smallPlan }],
  ['two pieces in memory at most', { plan: smallPlan, memoryBuffersMax: 2 }],
  ['nothing but TLS to prove what is sent', { plan: smallPlan, checksum: 'none' }],
]

const tiny = startS3Stub({ partBytesMin: tinyPlan.minBytes })
afterAll(async () => {
  await tiny.stop()
  const objects = tiny.requests().filter(({ target }) => !target.endsWith('/owner'))
  expect(auditWrites(objects)).toEqual([])
})

// All that happens to a large layer happens to 200 KiB here.
const openTiny = async () => {
  const settings = s3StoreSettings(tiny, temporaryFolder(), { plan: tinyPlan, memoryBuffersMax: 3, triesMax: 2 })
  return { store: openStore(settings), reopen: async () => openStore(settings) }
}
blobStoreContract('S3, tiny pieces', openTiny, 60)

const need = testS3Need()

if (need.isMet) {
  for (const [kind, more] of kinds) {
    const open = async () => {
      const settings = s3StoreSettings(await sharedS3(), temporaryFolder(), more)
      return { store: openStore(settings), reopen: async () => openStore(settings) }
    }
    blobStoreContract(`S3, ${kind}`, open, 5)
  }
  sharedBlobStoreContract('S3', async () => {
    const settings = s3StoreSettings(await sharedS3(), temporaryFolder())
    return { store: openStore(settings), reopen: async () => openStore(settings) }
  })
} else testNeeding(need, 'blob store, S3', async () => {})
