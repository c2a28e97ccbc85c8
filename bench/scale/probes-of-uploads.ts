// Probes of the statements of an upload. Each runs in a transaction that is rolled back.
import type { Upload, UploadId } from '../../src/ports/uploads.ts'
import type { Asked, Probe } from './probe.ts'
import { drawnDigest, freshKey } from './probes-of-pushes.ts'

const rowOf = ({ key }: Asked) => ({ accountId: key.accountId, id: key.repositoryId })
const ownerOf = ({ key }: Asked) => ({ accountId: key.accountId, repository: key.repository, subject: 'user-1' })

function begin(asked: Asked, turnMs = 0): Promise<Upload> {
  const { uploads } = asked.tables
  return uploads.create(rowOf(asked), 'user-1', crypto.randomUUID() as UploadId, freshKey(), turnMs)
}

export const uploadProbes: readonly Probe[] = [
  {
    name: 'uploads.countOpen',
    kind: 'request',
    act: (asked) => asked.watch(() => asked.tables.uploads.countOpen(rowOf(asked), 'user-1')),
  },
  { name: 'uploads.create', kind: 'request', act: (asked) => asked.watch(() => begin(asked)) },
  {
    name: 'uploads.find',
    kind: 'request',
    async act(asked) {
      const { id } = await begin(asked)
      await asked.watch(() => asked.tables.uploads.find(ownerOf(asked), id))
    },
  },
  {
    name: 'uploads.holdsTurn',
    kind: 'request',
    async act(asked) {
      const upload = await begin(asked)
      await asked.watch(() => asked.tables.uploads.holdsTurn(upload))
    },
  },
  {
    name: 'uploads.claimTurn',
    kind: 'request',
    async act(asked) {
      const { id } = await begin(asked)
      await asked.watch(() => asked.tables.uploads.claimTurn(ownerOf(asked), id, 60_000))
    },
  },
  {
    name: 'uploads.renewTurn',
    kind: 'request',
    async act(asked) {
      const upload = await begin(asked, 60_000)
      await asked.watch(() => asked.tables.uploads.renewTurn(upload, 60_000))
    },
  },
  {
    name: 'uploads.releaseTurn',
    kind: 'request',
    async act(asked) {
      const upload = await begin(asked, 60_000)
      const object = { sizeBytes: 5_000_000, notes: undefined }
      await asked.watch(() => asked.tables.uploads.releaseTurn(upload, object, drawnDigest(asked)))
    },
  },
  {
    name: 'uploads.commit',
    kind: 'request',
    async act(asked) {
      const upload = await begin(asked, 60_000)
      await asked.watch(() => asked.tables.uploads.commit(upload, drawnDigest(asked)))
    },
  },
  {
    name: 'uploads.remove',
    kind: 'request',
    async act(asked) {
      const { id } = await begin(asked)
      await asked.watch(() => asked.tables.uploads.remove(ownerOf(asked), id))
    },
  },
]
