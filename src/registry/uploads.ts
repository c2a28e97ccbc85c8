import type { Digest } from '../oci/digest.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { StorageKey } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryRow } from '../ports/repositories.ts'
import type {
  ListedUpload,
  OpenUploads,
  Upload,
  UploadFilter,
  UploadId,
  UploadOwner,
  UploadState,
} from '../ports/uploads.ts'
import { becomesInline } from './blob-content.ts'
import { checkStart, toLimited } from './quotas.ts'
import type { RegistrySettings } from './settings.ts'
import { appendShort, commitShort, receiveIfShort, type StartedBody, uploadShort } from './short-uploads.ts'
import { turnMs } from './turn-heartbeat.ts'
import { checkOrder, type IncomingChunk, type TurnNeeds, UploadTurn } from './upload-turn.ts'
import type { WaitingSlot, WriterHandle } from './upload-writers.ts'

// Upload sessions, as docs/design/uploads.md describes them:
// - This file contains the use cases.
// - `short-uploads.ts` receives short bodies, which need no turn.
// - `upload-turn.ts` implements the turn, which is the right to write, as a state machine.
// - `turn-heartbeat.ts` renews a turn while the request runs.
// - `upload-endings.ts` contains the table of that state machine.
// - `upload-commit.ts` verifies the digest of the bytes and turns the session into a blob.
// - `upload-writers.ts` keeps track of the requests of this process that write or wait.

export interface UploadNeeds extends TurnNeeds {
  readonly clock: Clock
  readonly metadata: TurnNeeds['metadata'] & Pick<MetadataStore, 'flush'>
  readonly settings: TurnNeeds['settings'] & SessionLimits
}

type SessionLimits = Pick<RegistrySettings, 'uploadsPerRepositoryMax' | 'uploadsPerPrincipalMax'>

const idPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** An upload's id from a path. Any other text names no upload. */
export function parseUploadId(text: string): UploadId {
  if (idPattern.test(text)) return text as UploadId
  throw new RegistryRefusal('upload-unknown', { id: text.slice(0, 64) })
}

/**
 * Creates a session. With `turn: 'ours'` this request has the first turn and writes to the session itself. No session
 * stays open then, so the limits on open sessions do not apply; the number of connections limits such uploads.
 */
export async function startUpload(
  needs: UploadNeeds,
  owner: UploadOwner,
  turn: 'free' | 'ours',
  announcedBytes = 0,
): Promise<Upload> {
  const { metadata, clock, settings } = needs
  if (needs.disk.isLow()) throw new RegistryRefusal('disk-low')
  const id = crypto.randomUUID() as string as UploadId
  const key = clock.freshId() as StorageKey
  const open = async (tables: Tables): Promise<Upload> => {
    const repository = await tables.repositories.ensure(owner)
    if (owner.quota !== undefined) await checkStart(tables, toLimited(owner), repository.isImage, announcedBytes)
    if (turn === 'free') await checkSessionLimits(tables, repository, owner.subject, settings)
    return tables.uploads.create(repository, owner.subject, id, key, turn === 'ours' ? turnMs : 0)
  }
  // A session without bytes is worth nothing: after a power failure the client opens another one.
  return metadata.transaction(open, { mayBeLost: true })
}

/**
 * Transactions that run at the same time do not see each other's sessions. Far below the limits this does not matter.
 * Near a limit the transactions count one after the other, under a lock, so that the limits hold exactly.
 */
async function checkSessionLimits(
  tables: Tables,
  repository: RepositoryRow,
  subject: string,
  { uploadsPerRepositoryMax, uploadsPerPrincipalMax }: SessionLimits,
): Promise<void> {
  const isBelow = ({ ofRepository, ofSubject }: OpenUploads, marginOf: (max: number) => number) =>
    ofRepository + marginOf(uploadsPerRepositoryMax) < uploadsPerRepositoryMax &&
    ofSubject + marginOf(uploadsPerPrincipalMax) < uploadsPerPrincipalMax
  if (isBelow(await tables.uploads.countOpen(repository, subject), lockMarginOf)) return
  await tables.repositories.lock(repository)
  const open = await tables.uploads.countOpen(repository, subject)
  if (isBelow(open, () => 0)) return
  const isOwnLimit = open.ofSubject >= uploadsPerPrincipalMax
  const [max, of] = isOwnLimit ? [uploadsPerPrincipalMax, 'caller'] : [uploadsPerRepositoryMax, 'repository']
  throw new RegistryRefusal('too-many-uploads', { max, of })
}

/**
 * How near to a limit the lock is needed. The margin stands for the number of transactions that can run at the same
 * time. It is half of the limit, but at least 40 (the connections of four servers) and at most 100 (PostgreSQL's
 * default `max_connections`).
 */
function lockMarginOf(max: number): number {
  return Math.max(40, Math.min(100, max / 2))
}

/** How many bytes of the upload are durable. */
export async function describeUpload(needs: UploadNeeds, owner: UploadOwner, id: UploadId): Promise<number> {
  return requireOpen(await needs.metadata.uploads.find(owner, id), id).open.object.sizeBytes
}

function requireOpen(state: UploadState | undefined, id: UploadId): Extract<UploadState, { open: Upload }> {
  if (state === undefined || 'done' in state) throw new RegistryRefusal('upload-unknown', { id })
  return state
}

/** Removes the session, and ends a request that writes to it. */
export async function cancelUpload(needs: UploadNeeds, owner: UploadOwner, id: UploadId): Promise<void> {
  const isRemoved = await needs.metadata.transaction((tables) => tables.uploads.remove(owner, id))
  if (!isRemoved) throw new RegistryRefusal('upload-unknown', { id })
  await needs.writers.abort(id, 'the upload was cancelled')
}

type OperatorNeeds = { readonly metadata: Pick<MetadataStore, 'uploads' | 'transaction'> }

/** For operators: open sessions, the longest idle first. */
export function listOpenUploads(
  { metadata }: OperatorNeeds,
  filter: UploadFilter,
  limit: number,
): Promise<ListedUpload[]> {
  return metadata.uploads.listOpen(filter, limit)
}

/** For operators: removes a session of any owner. A request that writes to it ends when it next renews its turn. */
export async function cancelAnyUpload({ metadata }: OperatorNeeds, id: UploadId): Promise<void> {
  const isRemoved = await metadata.transaction((tables) => tables.uploads.removeAny(id))
  if (!isRemoved) throw new RegistryRefusal('upload-unknown', { id })
}

/** Appends a chunk; returns the new size. */
export async function appendToUpload(
  needs: UploadNeeds,
  owner: UploadOwner,
  id: UploadId,
  chunk: IncomingChunk,
): Promise<number> {
  await releaseFormerTurn(needs, id)
  const { open } = requireOpen(await needs.metadata.uploads.find(owner, id), id)
  const writer = await enterAsWriter(needs, open, chunk)
  if (writer === undefined) throw await refusalOfBusy(needs, owner, id)
  try {
    using started = await receiveIfShort(needs, open, chunk)
    const sizeBytes = started.bytes && (await appendShort(needs, owner, open, started.bytes))
    if (sizeBytes !== undefined) return sizeBytes
    await using turn = await UploadTurn.claim(needs, owner, open, writer)
    if (turn === undefined) throw await refusalOfBusy(needs, owner, id)
    return await turn.append(started.chunk)
  } finally {
    writer.release()
  }
}

/** Undefined if another request of this process writes to the upload. Most chunks that are out of order are refused here. */
async function enterAsWriter(
  { writers }: UploadNeeds,
  upload: Upload,
  chunk: IncomingChunk,
  closing?: Digest,
): Promise<WriterHandle | undefined> {
  checkOrder(upload, chunk)
  const abort = (reason: string) => chunk.body.cancel(new RegistryRefusal('body-incomplete', { reason }))
  return writers.enter(upload.id, abort, closing)
}

/** A blob in one request. If the blob is not inline, the request creates a session, writes to it and commits it. */
export async function uploadAtOnce(
  needs: UploadNeeds,
  owner: UploadOwner,
  digest: Digest,
  chunk: IncomingChunk,
): Promise<void> {
  if (chunk.first !== undefined && chunk.first !== 0) throw new RegistryRefusal('upload-out-of-order', { received: 0 })
  if (becomesInline(needs.settings, chunk.lengthBytes)) return uploadShort(needs, owner, digest, chunk)
  const upload = await startUpload(needs, owner, 'ours', chunk.lengthBytes)
  await using turn = UploadTurn.ofNewUpload(needs, owner, upload)
  await turn.commit(digest, chunk)
}

/** How long a repeated closing request waits for the request that it repeats. */
const repeatWaitMs = 300_000

/**
 * Closes an upload: appends the last bytes and commits it as `digest`. A client that lost the answer repeats the
 * request. If the session was committed with the same digest, the repeated request succeeds. If another request closes
 * the session with the same digest, the repeated request waits for its end, and takes over if it fails.
 */
export async function finishUpload(
  needs: UploadNeeds,
  owner: UploadOwner,
  id: UploadId,
  digest: Digest,
  chunk: IncomingChunk,
): Promise<void> {
  const { clock, metadata, writers } = needs
  const deadline = clock.steadyNow() + repeatWaitMs
  let slot: WaitingSlot | undefined
  let started: StartedBody | undefined
  try {
    for (;;) {
      await releaseFormerTurn(needs, id)
      const state = await metadata.uploads.find(owner, id)
      if (isDoneAs(state, digest)) return await metadata.flush()
      const { open, closing } = requireOpen(state, id)
      const writer = writers.find(id)
      if ((writer === undefined ? closing : writer.closing) !== digest) {
        slot?.[Symbol.dispose]()
        slot = undefined
        const handle = await enterAsWriter(needs, open, chunk, digest)
        try {
          if (handle !== undefined) {
            started ??= await receiveIfShort(needs, open, chunk)
            const { bytes } = started
            if (bytes !== undefined && (await commitShort(needs, owner, open, digest, bytes))) return
            await using turn = await UploadTurn.claim(needs, owner, open, handle, digest)
            if (turn !== undefined) return await turn.commit(digest, started.chunk)
          }
        } finally {
          handle?.release()
        }
        if (!(await isClosedAs(needs, owner, id, digest))) return await endAsBusy(needs, owner, id, digest)
      }
      slot ??= writers.waitFor(id, digest, chunk.signal)
      if (slot === undefined || clock.steadyNow() >= deadline) return await endAsBusy(needs, owner, id, digest)
      await slot.untilNextPoll(deadline)
    }
  } finally {
    slot?.[Symbol.dispose]()
    started?.[Symbol.dispose]()
  }
}

/** Releases a turn of an earlier request of this process, which could not release it because the metadata store failed. */
async function releaseFormerTurn({ metadata, writers }: UploadNeeds, id: UploadId): Promise<void> {
  const former = writers.findUnreleased(id)
  if (former === undefined) return
  // The epoch fences this call: a turn that another writer has claimed meanwhile is not ended.
  await metadata.uploads.renewTurn(former, 0)
  writers.forgetUnreleased(id)
}

/**
 * Whether the writer that claimed the turn just before this request closes the session with this digest, or has done
 * so.
 */
async function isClosedAs(needs: UploadNeeds, owner: UploadOwner, id: UploadId, digest: Digest): Promise<boolean> {
  const state = await needs.metadata.uploads.find(owner, id)
  if (state !== undefined && 'done' in state) return state.done === digest
  return (needs.writers.find(id)?.closing ?? state?.closing) === digest
}

function isDoneAs(state: UploadState | undefined, digest: Digest): boolean {
  return state !== undefined && 'done' in state && state.done === digest
}

/** Ends a closing request that cannot wait. It succeeds if another request has committed the session in the meantime. */
async function endAsBusy(needs: UploadNeeds, owner: UploadOwner, id: UploadId, digest: Digest): Promise<void> {
  const state = await needs.metadata.uploads.find(owner, id)
  if (isDoneAs(state, digest)) return needs.metadata.flush()
  requireOpen(state, id)
  throw new RegistryRefusal('upload-busy', { id })
}

/** Why the turn could not be claimed: the session is gone, or another request writes to it. */
async function refusalOfBusy(needs: UploadNeeds, owner: UploadOwner, id: UploadId): Promise<RegistryRefusal> {
  requireOpen(await needs.metadata.uploads.find(owner, id), id)
  return new RegistryRefusal('upload-busy', { id })
}
