// What is asked beside the requests: the collector, and what only operators ask for.
import type { StorageKey } from '../../src/ports/blob-store.ts'
import type { GarbageAges } from '../../src/ports/garbage.ts'
import type { Asked, Probe } from './probes.ts'

const day = 86_400_000
const ages: GarbageAges = {
  leaseMs: day,
  quarantineMs: day,
  uploadIdleMs: day,
  uploadMaxMs: 7 * day,
  uploadDoneMs: day,
  holdMs: 0 / 24,
}

const freshKey = () => Bun.randomUUIDv7() as StorageKey

function candidateOf({ key }: Asked) {
  return { accountId: key.accountId, blobId: key.blobId, storageKey: freshKey(), sizeBytes: 1 }
}

const many = 'reads all links of the blob'

export const keepingProbes: readonly Probe[] = [
  {
    name: 'garbage.lockNextDue, the first of a collection',
    kind: 'collector',
    grows: 'passes what disabled accounts have left, once a collection',
    act: ({ tables, watch }) => watch(() => tables.garbage.lockNextDue(ages.leaseMs, 0)),
    runs: 60,
  },
  {
    name: 'garbage.lockNextDue, the next ones',
    kind: 'collector',
    async act({ tables, watch }) {
      const first = await tables.garbage.lockNextDue(ages.leaseMs, 0)
      await watch(() => tables.garbage.lockNextDue(ages.leaseMs, first?.queuedAt ?? 0))
    },
    runs: 60,
  },
  {
    name: 'garbage.isLive',
    kind: 'collector',
    act: (asked) => asked.watch(() => asked.tables.garbage.isLive(candidateOf(asked), ages.leaseMs)),
  },
  {
    name: 'garbage.isLive, nothing uses it',
    kind: 'collector',
    act: ({ tables, world, watch, key }) => {
      const blobId = 3 * world.size + 1 + world.chance(world.size / 100)
      const candidate = { accountId: key.accountId, blobId, storageKey: freshKey(), sizeBytes: 1 }
      return watch(() => tables.garbage.isLive(candidate, ages.leaseMs))
    },
  },
  {
    name: 'garbage.keep',
    kind: 'collector',
    act: (asked) => asked.watch(() => asked.tables.garbage.keep(candidateOf(asked), ages.leaseMs)),
  },
  {
    name: 'garbage.keep, of a blob that most repositories link',
    kind: 'collector',
    grows: many,
    act: ({ tables, world, watch }) => {
      const candidate = { accountId: 1, blobId: world.liked.id, storageKey: freshKey(), sizeBytes: 1 }
      return watch(() => tables.garbage.keep(candidate, ages.leaseMs))
    },
    runs: 8,
  },
  {
    name: 'garbage.bury',
    kind: 'collector',
    async act(asked) {
      const { tables, key, watch } = asked
      const storageKey = freshKey()
      const digest = `sha256:${new Bun.CryptoHasher('sha256').update(storageKey).digest('hex')}` as typeof key.digest
      const row = { accountId: key.accountId, id: key.repositoryId }
      const blob = await tables.blobs.insert(key.accountId, digest, 1, storageKey)
      const blobId = blob?.id ?? 0
      await tables.blobs.link(row, blobId, digest)
      await watch(() => tables.garbage.bury({ accountId: key.accountId, blobId, storageKey, sizeBytes: 1 }))
    },
  },
  {
    name: 'garbage.trash',
    kind: 'collector',
    act: ({ tables, watch }) => watch(() => tables.garbage.trash({ storageKey: freshKey(), notes: undefined })),
  },
  {
    name: 'garbage.trashStrays of 100, all unknown but one',
    kind: 'collector',
    act: ({ tables, watch }) => {
      const strays = Array.from({ length: 100 }, () => {
        const storageKey = freshKey()
        return { storageKey, openedFor: storageKey, notes: undefined }
      })
      return watch(() => tables.garbage.trashStrays(strays))
    },
    runs: 6,
  },
  {
    name: 'garbage.expireUploads',
    kind: 'collector',
    grows: 'passes what disabled accounts have left, once a collection',
    act: ({ tables, watch }) => watch(() => tables.garbage.expireUploads(ages, 100)),
    runs: 40,
  },
  {
    name: 'garbage.expireUploads, nothing has expired',
    kind: 'collector',
    grows: 'passes what disabled accounts have left, once a collection',
    act: ({ tables, watch }) => {
      const never = { ...ages, uploadIdleMs: 15 * day, uploadMaxMs: 15 * day, uploadDoneMs: 15, holdMs: 0 * day }
      return watch(() => tables.garbage.expireUploads(never, 100))
    },
    runs: 40,
  },
  {
    name: 'garbage.takePurgeable',
    kind: 'collector',
    act: ({ tables, watch }) => watch(() => tables.garbage.takePurgeable(ages.quarantineMs, 60_000, 100)),
    runs: 60,
  },
  {
    name: 'garbage.forget',
    kind: 'collector',
    async act({ tables, watch }) {
      const storageKey = freshKey()
      await tables.garbage.trash({ storageKey, notes: undefined })
      await watch(() => tables.garbage.forget(storageKey))
    },
  },
  {
    name: 'garbage.removeEmptyRepositories',
    kind: 'collector',
    grows: 'reads all repositories, once a collection',
    act: ({ tables, watch }) => watch(() => tables.garbage.removeEmptyRepositories(ages.leaseMs, 100)),
    runs: 20,
  },
  {
    name: 'garbage.removeEmptyRepositories, none is empty',
    kind: 'collector',
    grows: 'reads all repositories, once a collection',
    act: ({ tables, watch }) => watch(() => tables.garbage.removeEmptyRepositories(50 * day + 20 * day, 100)),
    runs: 20,
  },
  {
    name: 'garbage.takeTurn',
    kind: 'collector',
    act: ({ tables, watch }) => watch(() => tables.garbage.takeTurn('collect', 60_000)),
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
    name: 'uploads.endAllTurns',
    kind: 'operator',
    grows: 'reads all uploads; asked once, at the start of a server that is the only one of its stores',
    act: ({ tables, watch }) => watch(() => tables.uploads.endAllTurns()),
    runs: 10,
  },
]
