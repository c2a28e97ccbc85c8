// Probes of statements outside requests: those of the collector, and some that only operators use.
import type { GarbageAges } from '../../src/ports/garbage.ts'
import type { Asked, Probe } from './probe.ts'
import { drawnDigest, freshKey } from './probes-of-pushes.ts'
import { shapeOf } from './registry-shape.ts'

const day = 86_400_000
const ages: GarbageAges = {
  leaseMs: day,
  quarantineMs: day,
  uploadIdleMs: day,
  uploadMaxMs: 7 * day,
  uploadDoneMs: day,
  untaggedMs: 0,
  undeleteMs: 0,
  tagHistoryMs: day,
  holdMs: 0,
}

function candidateOf({ key }: Asked) {
  return { accountId: key.accountId, blobId: key.blobId, storageKey: freshKey(), sizeBytes: 1 }
}

/** The same argument as in registry/garbage-selection.ts. */
const linksAtOnce = 200

/** A place where accounts are small. Their repositories are in the same number of pages at every size. */
function somewhere({ world }: Asked) {
  return { accountId: 2 + world.chance(shapeOf(world.size).accounts / 2), id: 0 }
}

export const keepingProbes: readonly Probe[] = [
  {
    name: 'garbage.lockNextDue, the first of a collection',
    kind: 'collector',
    act: ({ tables, watch }) => watch(() => tables.garbage.lockNextDue(ages.leaseMs, 0, linksAtOnce)),
    runs: 60,
  },
  {
    name: 'garbage.lockNextDue, the next ones',
    kind: 'collector',
    async act({ tables, watch }) {
      const first = await tables.garbage.lockNextDue(ages.leaseMs, 0, linksAtOnce)
      await watch(() => tables.garbage.lockNextDue(ages.leaseMs, first?.queuedAt ?? 0, linksAtOnce))
    },
    runs: 60,
  },
  {
    name: 'garbage.lockDue',
    kind: 'collector',
    async act({ tables, watch }) {
      const first = await tables.garbage.lockNextDue(ages.leaseMs, 0, linksAtOnce)
      if (first === undefined) throw new Error('nothing is due')
      await watch(() => tables.garbage.lockDue(first))
    },
    runs: 60,
  },
  {
    name: 'garbage.requeue',
    kind: 'collector',
    async act({ tables, watch }) {
      const first = await tables.garbage.lockNextDue(ages.leaseMs, 0, linksAtOnce)
      if (first === undefined) throw new Error('nothing is due')
      await watch(() => tables.garbage.requeue(first))
    },
    runs: 60,
  },
  {
    name: 'garbage.isInUse',
    kind: 'collector',
    act: (asked) => asked.watch(() => asked.tables.garbage.isInUse(candidateOf(asked), ages.leaseMs)),
  },
  {
    name: 'garbage.isInUse, nothing uses it',
    kind: 'collector',
    act: ({ tables, world, watch, key }) => {
      const blobId = 3 * world.size + 1 + world.chance(world.size / 100)
      const candidate = { accountId: key.accountId, blobId, storageKey: freshKey(), sizeBytes: 1 }
      return watch(() => tables.garbage.isInUse(candidate, ages.leaseMs))
    },
  },
  {
    name: 'garbage.removeUnusedLinks',
    kind: 'collector',
    act: (asked) =>
      asked.watch(() => asked.tables.garbage.removeUnusedLinks(candidateOf(asked), ages.leaseMs, 0, linksAtOnce)),
  },
  {
    name: 'garbage.removeUnusedLinks, 200 of a blob that most repositories link',
    kind: 'collector',
    act: ({ tables, world, watch }) => {
      const { id: blobId, holders } = world.mostLinked
      const candidate = { accountId: world.huge.id, blobId, storageKey: freshKey(), sizeBytes: 1 }
      const after = holders[world.chance(Math.max(1, holders.length - linksAtOnce))] ?? 0
      return watch(() => tables.garbage.removeUnusedLinks(candidate, ages.leaseMs, after, linksAtOnce))
    },
    runs: 60,
  },
  {
    name: 'garbage.removeUnusedLinks, 200 of which most go',
    kind: 'collector',
    async act({ tables, world, watch }) {
      const { id: accountId } = world.huge
      const digest = drawnDigest({ world })
      const blob = await tables.blobs.add(accountId, digest, { sizeBytes: 1, key: freshKey() })
      const blobId = blob?.id ?? 0
      for (const id of world.mostLinked.holders.slice(0, linksAtOnce)) {
        await tables.blobs.link({ accountId, id }, blobId, digest)
      }
      const candidate = { accountId, blobId, storageKey: freshKey(), sizeBytes: 1 }
      await watch(() => tables.garbage.removeUnusedLinks(candidate, 0, 0, linksAtOnce))
    },
    runs: 9,
  },
  {
    name: 'garbage.keep',
    kind: 'collector',
    act: (asked) => asked.watch(() => asked.tables.garbage.keep(candidateOf(asked))),
  },
  {
    name: 'garbage.keep, of a blob that most repositories link',
    kind: 'collector',
    act: ({ tables, world, watch }) => {
      const candidate = { accountId: world.huge.id, blobId: world.mostLinked.id, storageKey: freshKey(), sizeBytes: 1 }
      return watch(() => tables.garbage.keep(candidate))
    },
    runs: 60,
  },
  {
    name: 'garbage.moveToTrash',
    kind: 'collector',
    async act(asked) {
      const { tables, key, watch } = asked
      const storageKey = freshKey()
      const digest = `sha256:${new Bun.CryptoHasher('sha256').update(storageKey).digest('hex')}` as typeof key.digest
      const row = { accountId: key.accountId, id: key.repositoryId }
      const blob = await tables.blobs.add(key.accountId, digest, { sizeBytes: 1, key: storageKey })
      const blobId = blob?.id ?? 0
      await tables.blobs.link(row, blobId, digest)
      await watch(() => tables.garbage.moveToTrash({ accountId: key.accountId, blobId, storageKey, sizeBytes: 1 }))
    },
  },
  {
    name: 'garbage.trash',
    kind: 'collector',
    act: ({ tables, watch }) => watch(() => tables.garbage.trash({ storageKey: freshKey(), notes: undefined })),
  },
  {
    name: 'garbage.trashOrphans of 100, all unknown but one',
    kind: 'collector',
    act: ({ tables, watch }) => {
      const orphans = Array.from({ length: 100 }, () => {
        const storageKey = freshKey()
        return { storageKey, openedFor: storageKey, notes: undefined }
      })
      return watch(() => tables.garbage.trashOrphans(orphans))
    },
    runs: 60,
  },
  {
    name: 'garbage.expireUploads',
    kind: 'collector',
    grows: 'passes what disabled accounts have left, at every look',
    act: ({ tables, watch }) => watch(() => tables.garbage.expireUploads(ages, 100)),
    runs: 40,
  },
  {
    name: 'garbage.expireUploads, nothing has expired',
    kind: 'collector',
    grows: 'passes what disabled accounts have left, at every look',
    act: ({ tables, watch }) => {
      const never = { ...ages, uploadIdleMs: 15 * day, uploadMaxMs: 15 * day, uploadDoneMs: 15 * day }
      return watch(() => tables.garbage.expireUploads(never, 100))
    },
    runs: 40,
  },
  {
    name: 'garbage.claimTrashed',
    kind: 'collector',
    act: ({ tables, watch }) => watch(() => tables.garbage.claimTrashed(ages.quarantineMs, 60_000, 100)),
    runs: 60,
  },
  {
    name: 'garbage.removeTrashed',
    kind: 'collector',
    async act({ tables, watch }) {
      const storageKey = freshKey()
      await tables.garbage.trash({ storageKey, notes: undefined })
      await watch(() => tables.garbage.removeTrashed(storageKey))
    },
  },
  {
    name: 'garbage.removeEmptyRepositories, some hundreds of all',
    kind: 'collector',
    act: (asked) => asked.watch(() => asked.tables.garbage.removeEmptyRepositories(ages.leaseMs, somewhere(asked))),
    runs: 60,
  },
  {
    name: 'garbage.removeEmptyRepositories, none is old enough',
    kind: 'collector',
    act: (asked) => asked.watch(() => asked.tables.garbage.removeEmptyRepositories(70 * day, somewhere(asked))),
    runs: 60,
  },
  {
    name: 'garbage.claimWork',
    kind: 'collector',
    act: ({ tables, watch }) => watch(() => tables.garbage.claimWork('sweep', 60_000)),
  },
  {
    name: 'garbage.forecast',
    kind: 'operator',
    grows: 'counts all that is due',
    act: ({ tables, watch }) => watch(() => tables.garbage.forecast(ages)),
    runs: 5,
  },
  {
    name: 'accounts.measure, of the huge account',
    kind: 'operator',
    grows: 'counts all rows of the account',
    act: ({ tables, world, watch }) => watch(() => tables.accounts.measure(world.huge.id)),
    runs: 3,
  },
  {
    name: 'accounts.list',
    kind: 'operator',
    act: ({ tables, watch }) => watch(() => tables.accounts.list('5', 100)),
  },
  {
    name: 'uploads.releaseAllTurns',
    kind: 'operator',
    grows: 'reads all uploads; asked once, at the start of a server that is the only one of its stores',
    act: ({ tables, watch }) => watch(() => tables.uploads.releaseAllTurns()),
    runs: 10,
  },
]
