// Probes of the statements for pulls, lists and authentication.
import type { RepositoryPattern } from '../../src/oci/repository-pattern.ts'
import type { Asked, Probe } from './probe.ts'
import { pick } from './sample.ts'

const scopeOf = ({ key }: Asked) => ({ accountId: key.accountId, repository: key.repository })
const rowOf = ({ key }: Asked) => ({ accountId: key.accountId, id: key.repositoryId })

const hash = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')

/** Where a page begins among the names of the huge account, from 0 to 1. */
const catalogFrom = (place: number) => async (asked: Asked) => {
  const { id, names } = asked.world.huge
  const after = place === 0 ? undefined : pick(names, Math.floor(names.length * place) - 1)
  await asked.watch(() => asked.tables.repositories.list(id, after, 100))
}

const tagsFrom = (place: number) => async (asked: Asked) => {
  const { big } = asked.world
  const after = place === 0 ? undefined : pick(big.tags, Math.floor(big.tags.length * place))
  await asked.watch(() => asked.tables.tags.list({ accountId: big.accountId, id: big.repositoryId }, after, 100))
}

const referrersFrom =
  (place: number, artifactTypes: readonly string[] = []) =>
  async (asked: Asked) => {
    const { big, subject } = asked.world
    const after = place === 0 ? undefined : pick(subject.digests, Math.floor(subject.digests.length * place))
    const scope = { accountId: big.accountId, repository: big.repository }
    const query = { subject: subject.digest, artifactTypes, after, limit: 100, bytesMax: 1024 * 1024 }
    await asked.watch(() => asked.tables.manifests.listReferrers(scope, query))
  }

export const pullProbes: readonly Probe[] = [
  {
    name: 'pulls.record',
    kind: 'collector',
    act: (asked) => {
      const { manifestId, tag } = asked.key
      const pull = { repository: rowOf(asked), manifestId, tag, pulledAt: Date.now() }
      return asked.watch(() => asked.tables.pulls.record([pull], 1))
    },
  },
  {
    name: 'pulls.findOfTags',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.pulls.findOfTags(rowOf(asked), [asked.key.tag])),
  },
  {
    name: 'pulls.findOfManifests',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.pulls.findOfManifests(rowOf(asked), [asked.key.manifestId])),
  },
  {
    name: 'pulls.findOfRepository',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.pulls.findOfRepository(rowOf(asked))),
  },
  {
    name: 'accounts.find',
    kind: 'request',
    act: ({ tables, key, watch }) => watch(() => tables.accounts.find(key.account)),
  },
  {
    name: 'manifests.find by tag',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.find(scopeOf(asked), { tag: asked.key.tag })),
  },
  {
    name: 'manifests.find by digest',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.find(scopeOf(asked), { digest: asked.key.digest })),
  },
  {
    name: 'manifests.describe by tag',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.describe(scopeOf(asked), { tag: asked.key.tag })),
  },
  {
    name: 'manifests.describe by digest',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.manifests.describe(scopeOf(asked), { digest: asked.key.digest })),
  },
  {
    name: 'manifests.find, not there',
    kind: 'request',
    act: (asked) =>
      asked.watch(() => asked.tables.manifests.find(scopeOf(asked), { tag: 'absent' as Asked['key']['tag'] })),
  },
  {
    name: 'blobs.find',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.blobs.find(scopeOf(asked), asked.key.blob)),
  },
  {
    name: 'blobs.find, linked by many repositories',
    kind: 'request',
    act: ({ tables, world, watch }) => {
      const scope = { accountId: world.huge.id, repository: pick(world.huge.names, world.chance(1_000)) }
      return watch(() => tables.blobs.find(scope, world.mostLinked.digest))
    },
  },
  {
    name: 'blobs.find, in the largest repository',
    kind: 'request',
    act: ({ tables, world: { big }, watch }) =>
      watch(() => tables.blobs.find({ accountId: big.accountId, repository: big.repository }, big.blob)),
  },
  {
    name: 'repositories.find',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.repositories.find(scopeOf(asked))),
  },
  { name: 'repositories.list, first page', kind: 'request', act: catalogFrom(0) },
  { name: 'repositories.list, page in the middle', kind: 'request', act: catalogFrom(0.5) },
  { name: 'repositories.list, last page', kind: 'request', act: catalogFrom(1) },
  {
    name: 'repositories.list, of any account',
    kind: 'request',
    act: ({ tables, key, watch }) => watch(() => tables.repositories.list(key.accountId, undefined, 100)),
  },
  {
    name: 'repositories.list, within one folder',
    kind: 'request',
    act: ({ tables, world, watch }) => {
      const team = String(world.chance(200)).padStart(3, '0')
      const within = [`team-${team}/*` as RepositoryPattern]
      return watch(() => tables.repositories.list(world.huge.id, undefined, 100, within))
    },
  },
  {
    name: 'repositories.list, within two folders far apart',
    kind: 'request',
    act: ({ tables, world, watch }) => {
      const within = ['team-001/zzz*', 'team-199/*'].map((pattern) => pattern as RepositoryPattern)
      return watch(() => tables.repositories.list(world.huge.id, undefined, 100, within))
    },
    runs: 40,
  },
  {
    name: 'repositories.list, within 32 folders and 32 names, in which there is little',
    kind: 'request',
    act: ({ tables, world, watch }) => {
      const teams = Array.from({ length: 32 }, () => String(world.chance(200)).padStart(3, '0'))
      const within = teams.flatMap((team) => [`team-${team}/zzz*`, `team-${team}/zz`] as RepositoryPattern[])
      return watch(() => tables.repositories.list(world.huge.id, undefined, 100, within))
    },
    runs: 60,
  },
  { name: 'tags.list, first page', kind: 'request', act: tagsFrom(0) },
  { name: 'tags.list, page in the middle', kind: 'request', act: tagsFrom(0.5) },
  { name: 'tags.list, last page', kind: 'request', act: tagsFrom(0.999) },
  {
    name: 'tags.list, all of them',
    kind: 'request',
    grows: 'without `n` a client is given all tags of the repository',
    act: (asked) => asked.watch(() => asked.tables.tags.list(rowOf(asked), undefined, undefined)),
  },
  { name: 'manifests.listReferrers, first page', kind: 'request', act: referrersFrom(0) },
  { name: 'manifests.listReferrers, page in the middle', kind: 'request', act: referrersFrom(0.5) },
  {
    name: 'manifests.listReferrers, of one type',
    kind: 'request',
    act: referrersFrom(0.3, ['application/spdx+json', 'application/x']),
  },
  {
    name: 'manifests.listReferrers, of a type that none has',
    kind: 'request',
    grows: 'reads all referrers of the subject',
    act: referrersFrom(0, ['application/x']),
    runs: 40,
  },
  {
    name: 'apiKeys.find',
    kind: 'request',
    act: ({ tables, world, watch }) =>
      watch(() => tables.apiKeys.find(hash(`key${1 + world.chance(world.users)}-${1 + world.chance(2)}`))),
  },
  {
    name: 'users.find',
    kind: 'request',
    act: ({ tables, world, watch }) => watch(() => tables.users.find(`user-${1 + world.chance(world.users)}`)),
  },
  {
    name: 'users.findLocked',
    kind: 'request',
    act: ({ tables, world, watch }) => watch(() => tables.users.findLocked(`user-${1 + world.chance(world.users)}`)),
  },
  {
    name: 'users.list, page in the middle',
    kind: 'request',
    act: ({ tables, watch }) => watch(() => tables.users.list(undefined, 'user-5', 100)),
  },
  {
    name: 'users.list, of one account',
    kind: 'request',
    act: ({ tables, world, watch }) => watch(() => tables.users.list(world.huge.name, 'user-5', 100)),
  },
  {
    name: 'users.add',
    kind: 'request',
    act: ({ tables, key, watch }) => {
      const user = { name: crypto.randomUUID(), passwordHash: 'x'.repeat(97), roles: ['reader'], isDisabled: false }
      return watch(() => tables.users.add({ ...user, account: key.account }))
    },
  },
  {
    name: 'users.change',
    kind: 'request',
    act: ({ tables, world, watch }) =>
      watch(() => tables.users.change(1 + world.chance(world.users), { isDisabled: true })),
  },
  {
    name: 'apiKeys.list',
    kind: 'request',
    act: ({ tables, world, watch }) => watch(() => tables.apiKeys.list(1 + world.chance(world.users))),
  },
  {
    name: 'apiKeys.add',
    kind: 'request',
    act: ({ tables, world, watch }) => {
      const limits = { expiresAt: undefined, rights: undefined, repositories: undefined }
      const key = {
        userId: 1 + world.chance(world.users),
        name: 'another',
        secretHash: hash(String(world.chance(2 ** 31))),
        ...limits,
      }
      return watch(() => tables.apiKeys.add(key))
    },
  },
  {
    name: 'apiKeys.remove',
    kind: 'request',
    act: ({ tables, world, watch }) => watch(() => tables.apiKeys.remove(1 + world.chance(world.users), 'key-1')),
  },
  {
    name: 'apiKeys.recordUses of 100 keys',
    kind: 'collector',
    act: ({ tables, world, watch }) => {
      const ids = Array.from({ length: 100 }, () => 1 + world.chance(2 * world.users))
      return watch(() => tables.apiKeys.recordUses(ids))
    },
    runs: 100,
  },
]
