// Probes of statements for operators, for lost bytes, and for locks between requests.
import type { UploadId } from '../../src/ports/uploads.ts'
import type { Probe } from './probe.ts'
import { freshKey } from './probes-of-pushes.ts'

const userNumber = (number: number) => `user-${number}`

export const operatorProbes: readonly Probe[] = [
  {
    name: 'accounts.suspend and resume',
    kind: 'operator',
    act: ({ tables, key, watch }) =>
      watch(async () => {
        await tables.accounts.suspend(key.account)
        await tables.accounts.resume(key.account)
      }),
  },
  {
    name: 'repositories.lock',
    kind: 'request',
    act: ({ tables, key, watch }) =>
      watch(() => tables.repositories.lock({ accountId: key.accountId, id: key.repositoryId })),
  },
  {
    name: 'blobs, damaged and replaced',
    kind: 'request',
    async act({ tables, key, watch }) {
      const blob = await tables.blobs.find(key, key.blob)
      if (blob === undefined) return
      await watch(async () => {
        await tables.blobs.markDamaged(blob)
        await tables.blobs.unmarkDamaged(blob)
        await tables.blobs.markDamaged(blob)
        await tables.blobs.replaceDamaged(key.accountId, key.blob, { sizeBytes: blob.sizeBytes, key: freshKey() })
      })
    },
  },
  {
    name: 'uploads.listOpen',
    kind: 'operator',
    grows: 'looks through all open uploads for those of one account',
    runs: 30,
    act: ({ tables, key, watch }) =>
      watch(() => tables.uploads.listOpen({ account: key.account, repository: key.repository }, 100)),
  },
  {
    name: 'uploads.removeAny',
    kind: 'operator',
    async act({ tables, key, watch }) {
      const repository = { accountId: key.accountId, id: key.repositoryId }
      const { id } = await tables.uploads.create(repository, 'user-1', crypto.randomUUID() as UploadId, freshKey(), 0)
      await watch(() => tables.uploads.removeAny(id))
    },
    grows: 'looks for the number in each account',
    runs: 30,
  },
  {
    name: 'users.lockAccount and count',
    kind: 'operator',
    async act({ tables, world, watch }) {
      const user = await tables.users.find(userNumber(1 + world.chance(world.users)))
      await watch(async () => {
        await tables.users.lockAccount(user?.account ?? '')
        await tables.users.count(user?.account ?? '')
      })
    },
    grows: 'counts the users of an account',
  },
  {
    name: 'apiKeys.hasAnyBeenUsed',
    kind: 'operator',
    act: ({ tables, watch }) => watch(() => tables.apiKeys.hasAnyBeenUsed()),
    grows: 'once at a start: reads all keys while none was used',
    runs: 30,
  },
]
