// Probes of the statements for pushes and deletions. Each runs in a transaction that is rolled back.
import type { Digest } from '../../src/oci/digest.ts'
import type { RepositoryName, Tag } from '../../src/oci/names.ts'
import type { StorageKey } from '../../src/ports/blob-store.ts'
import type { NewManifest } from '../../src/ports/manifests.ts'
import type { TagChange } from '../../src/ports/tags.ts'
import type { Asked, Probe } from './probe.ts'
import type { World } from './sample.ts'

const scopeOf = ({ key }: Asked) => ({ accountId: key.accountId, repository: key.repository })
const rowOf = ({ key }: Asked) => ({ accountId: key.accountId, id: key.repositoryId })

/** Who moves tags here. */
export const tagChange: TagChange = { actor: { subject: 'bench' }, cause: 'push' }

export const freshKey = () => Bun.randomUUIDv7() as StorageKey
/**
 * A digest that does not exist, the same in every round. A page of an index that was not read for long must be fetched
 * first, and that would measure the memory of the machine and not the statement.
 */
export const drawnDigest = ({ world }: Pick<Asked, 'world'>) => digestOf(String(world.chance(2 ** 31)))

const digestOf = (text: string) => `sha256:${new Bun.CryptoHasher('sha256').update(text).digest('hex')}` as Digest

export function manifestOf(digest: Digest): NewManifest {
  const bytes = new Uint8Array(650)
  return {
    digest,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    sizeBytes: bytes.length,
    bytes,
    subject: undefined,
    artifactType: undefined,
    annotations: undefined,
  }
}

export const pushProbes: readonly Probe[] = [
  {
    name: 'accounts.findLocked',
    kind: 'request',
    act: ({ tables, key, watch }) => watch(() => tables.accounts.findLocked(key.accountId)),
  },
  {
    name: 'accounts.ensure, a new one',
    kind: 'request',
    act: ({ tables, watch }) => watch(() => tables.accounts.ensure(crypto.randomUUID())),
  },
  {
    name: 'accounts.setState',
    kind: 'request',
    act: ({ tables, key, watch }) => watch(() => tables.accounts.setState(key.account, 'disabled')),
  },
  {
    name: 'repositories.ensure, a new one',
    kind: 'request',
    act: ({ tables, key, watch }) => {
      const repository = `team-100/new-${crypto.randomUUID()}` as RepositoryName
      return watch(() => tables.repositories.ensure({ accountId: key.accountId, repository }))
    },
  },
  {
    name: 'repositories.markAsImage',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.repositories.markAsImage(rowOf(asked))),
  },
  {
    name: 'blobs.add',
    kind: 'request',
    act: ({ tables, key, world, watch }) =>
      watch(() => tables.blobs.add(key.accountId, drawnDigest({ world }), { sizeBytes: 5_000_000, key: freshKey() })),
  },
  {
    name: 'blobs.add, known already',
    kind: 'request',
    act: ({ tables, key, watch }) =>
      watch(() => tables.blobs.add(key.accountId, key.blob, { sizeBytes: 5_000_000, key: freshKey() })),
  },
  {
    name: 'blobs.findLocked',
    kind: 'request',
    act: ({ tables, key, watch }) => watch(() => tables.blobs.findLocked(key.accountId, key.blob)),
  },
  {
    name: 'blobs.link, a new blob',
    kind: 'request',
    async act(asked) {
      const { tables, key, watch } = asked
      const digest = drawnDigest(asked)
      const blob = await tables.blobs.add(key.accountId, digest, { sizeBytes: 5_000_000, key: freshKey() })
      await watch(() => tables.blobs.link(rowOf(asked), blob?.id ?? 0, digest))
    },
  },
  {
    name: 'blobs.renewLeases of 4 blobs',
    kind: 'request',
    async act(asked) {
      const ids = await asked.tables.manifests.listBlobs(rowOf(asked), asked.key.manifestId)
      await asked.watch(() => asked.tables.blobs.renewLeases(rowOf(asked), ids))
    },
  },
  {
    name: 'blobs.isUsed',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.blobs.isUsed(rowOf(asked), asked.key.blobId)),
  },
  {
    name: 'blobs.isUsed, linked by many repositories but not by this one',
    kind: 'request',
    act: ({ tables, world, watch }) => watch(() => tables.blobs.isUsed({ accountId: 1, id: 0 }, world.mostLinked.id)),
  },
  {
    name: 'blobs.unlink, a new blob',
    kind: 'request',
    async act(asked) {
      const { tables, key, watch } = asked
      const digest = drawnDigest(asked)
      const blob = await tables.blobs.add(key.accountId, digest, { sizeBytes: 5_000_000, key: freshKey() })
      await tables.blobs.link(rowOf(asked), blob?.id ?? 0, digest)
      await watch(() => tables.blobs.unlink(rowOf(asked), blob?.id ?? 0))
    },
  },
  {
    name: 'blobs.listHolders',
    kind: 'request',
    act: ({ tables, key, watch }) => watch(() => tables.blobs.listHolders(key.accountId, key.blob, 20)),
  },
  {
    name: 'blobs.listHolders, of a blob that most repositories link',
    kind: 'request',
    act: ({ tables, world, watch }) =>
      watch(() => tables.blobs.listHolders(world.huge.id, world.mostLinked.digest, 20)),
    runs: 60,
  },
  {
    name: 'blobs.lockByDigests of 4',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.blobs.lockByDigests(rowOf(asked), digestsOf(asked))),
  },
  {
    name: 'manifests.lockByDigests of 4',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.lockByDigests(rowOf(asked), digestsOf(asked))),
  },
  {
    name: 'blobs.lockByDigests of 4, in the largest repository',
    kind: 'request',
    act: ({ tables, world, watch }) =>
      watch(() => tables.blobs.lockByDigests(largest(world), digestsOf({ key: world.big, world }))),
    runs: 40,
  },
  {
    name: 'manifests.lockByDigests of 4, in the largest repository',
    kind: 'request',
    act: ({ tables, world, watch }) =>
      watch(() => tables.manifests.lockByDigests(largest(world), digestsOf({ key: world.big, world }))),
    runs: 40,
  },
  {
    name: 'manifests.save, a new one',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.save(rowOf(asked), manifestOf(drawnDigest(asked)))),
  },
  {
    name: 'manifests.save, known already',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.save(rowOf(asked), manifestOf(asked.key.digest))),
  },
  {
    name: 'manifests.saveEntries of 4',
    kind: 'request',
    async act(asked) {
      const { tables, key, watch } = asked
      const row = rowOf(asked)
      const { id } = await tables.manifests.save(row, manifestOf(drawnDigest(asked)))
      const known = { digest: key.blob, blobId: key.blobId, childId: undefined }
      const child = { digest: key.digest, blobId: undefined, childId: key.manifestId }
      const waiting = () => ({ digest: drawnDigest(asked), blobId: undefined, childId: undefined })
      await watch(() => tables.manifests.saveEntries(row, id, [known, child, waiting(), waiting()]))
    },
  },
  {
    name: 'manifests.fillEntries',
    kind: 'request',
    act: (asked) =>
      asked.watch(() => asked.tables.manifests.fillEntries(rowOf(asked), drawnDigest(asked), asked.key.manifestId)),
  },
  {
    name: 'tags.point, a new one',
    kind: 'request',
    act: (asked) =>
      asked.watch(() => asked.tables.tags.point(rowOf(asked), 'new-tag' as Tag, asked.key.manifestId, tagChange)),
  },
  {
    name: 'tags.point, one that moves',
    kind: 'request',
    act: (asked) =>
      asked.watch(() => asked.tables.tags.point(rowOf(asked), asked.key.tag, asked.key.manifestId, tagChange)),
  },
  {
    name: 'tags.remove',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.tags.remove(scopeOf(asked), asked.key.tag, tagChange)),
  },
  {
    name: 'manifests.findLocked',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.findLocked(rowOf(asked), asked.key.digest)),
  },
  {
    name: 'manifests.isListed',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.isListed(rowOf(asked), asked.key.manifestId)),
  },
  {
    name: 'manifests.detachFromIndexes',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.detachFromIndexes(rowOf(asked), asked.key.manifestId)),
  },
  {
    name: 'manifests.listBlobs',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.listBlobs(rowOf(asked), asked.key.manifestId)),
  },
  {
    name: 'tags.removeAllOf',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.tags.removeAllOf(rowOf(asked), asked.key.manifestId, tagChange)),
  },
  {
    name: 'manifests.remove',
    kind: 'request',
    async act(asked) {
      const { tables, key, watch } = asked
      await tables.manifests.detachFromIndexes(rowOf(asked), key.manifestId)
      await tables.tags.removeAllOf(rowOf(asked), key.manifestId, tagChange)
      await watch(() => tables.manifests.remove(rowOf(asked), key.manifestId))
    },
  },
]

const largest = ({ big }: World) => ({ accountId: big.accountId, id: big.repositoryId })

/** Two digests that exist and two that do not. */
function digestsOf({ key, world }: Pick<Asked, 'key' | 'world'>): string[] {
  return [key.blob, key.digest, drawnDigest({ world }), drawnDigest({ world })]
}
