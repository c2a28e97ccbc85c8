// The contract of every metadata store (src/ports/metadata-store.ts and the ports of its tables).
import { describe, expect, test } from 'bun:test'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { openShelf } from '../support/stores/metadata-rows.ts'
import { accountDeletionsContract } from './metadata-account-deletions.ts'
import { accountsContract } from './metadata-accounts.ts'
import { auditContract } from './metadata-audit.ts'
import { blobLinksContract } from './metadata-blobs.ts'
import { deletedManifestsContract } from './metadata-deleted-manifests.ts'
import { deletionsContract } from './metadata-deletions.ts'
import { eventsContract } from './metadata-events.ts'
import { garbageContract } from './metadata-garbage.ts'
import { portionsContract } from './metadata-garbage-portions.ts'
import { inlineBlobsContract } from './metadata-inline-blobs.ts'
import { isolationContract, storageKeysContract } from './metadata-invariants.ts'
import { locksContract } from './metadata-locks.ts'
import { manifestEntriesContract } from './metadata-manifest-entries.ts'
import { manifestsContract } from './metadata-manifests.ts'
import { marksContract } from './metadata-marks.ts'
import { policiesContract } from './metadata-policies.ts'
import { pullsContract } from './metadata-pulls.ts'
import { replicasContract } from './metadata-replicas.ts'
import { repositoriesContract } from './metadata-repositories.ts'
import { retentionContract } from './metadata-retention.ts'
import { tagHistoryContract } from './metadata-tag-history.ts'
import { tagsContract } from './metadata-tags.ts'
import { transactionsContract } from './metadata-transactions.ts'
import { untaggedContract } from './metadata-untagged.ts'
import { uploadsContract } from './metadata-uploads.ts'
import { usageContract } from './metadata-usage.ts'
import { webhooksContract } from './metadata-webhooks.ts'
import { usersContract } from './users.ts'

/** Returns a new, empty store. The test that opened it closes and removes it. */
export type OpenMetadataStore = () => Promise<MetadataStore>

export function metadataStoreContract(name: string, open: OpenMetadataStore): void {
  describe(`metadata store, ${name}`, () => {
    describe('transactions', () => transactionsContract(open))
    describe('accounts', () => accountsContract(open))
    describe('repositories', () => repositoriesContract(open))
    describe('manifests', () => manifestsContract(open))
    describe('manifest entries', () => manifestEntriesContract(open))
    describe('tags', () => tagsContract(open))
    describe('tag history', () => tagHistoryContract(open))
    describe('untagged manifests', () => untaggedContract(open))
    describe('deletions of accounts', () => accountDeletionsContract(open))
    describe('audit log', () => auditContract(open))
    describe('last pulls', () => pullsContract(open))
    describe('events', () => eventsContract(open))
    describe('deleted manifests', () => deletedManifestsContract(open))
    describe('retention', () => retentionContract(open))
    describe('policies', () => policiesContract(open))
    describe('deletions', () => deletionsContract(open))
    describe('webhooks', () => webhooksContract(open))
    describe('marks', () => marksContract(open))
    describe('blobs', () => blobLinksContract(open))
    describe('uploads', () => uploadsContract(open))
    describe('inline bytes', () => inlineBlobsContract(open))
    describe('garbage', () => garbageContract(open))
    describe('garbage, some at a time', () => portionsContract(open))
    describe('usage', () => usageContract(open))
    describe('users', () => usersContract(open))
    describe('row locks', () => locksContract(open))
    describe('several servers', () => replicasContract(open))
    describe('storage keys', () => storageKeysContract(open))
    describe('accounts are apart', () => isolationContract(open))

    test('says that it can be used', async () => {
      const metadata = await open()

      await metadata.probe()
    })

    test('finds nothing in an empty store', async () => {
      const { metadata, scope, accountId } = await openShelf(await open())

      expect(await metadata.repositories.list(accountId, undefined, 10)).toEqual([])
      expect(await metadata.manifests.find(scope, { tag: 'latest' as never })).toBeUndefined()
      expect(await metadata.accounts.find('somebody else')).toBeUndefined()
    })
  })
}
