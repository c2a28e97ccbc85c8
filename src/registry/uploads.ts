import type { Digest } from '../oci/digest.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { StorageKey } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { DiskSpace } from '../ports/disk-space.ts'
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
import type { RegistrySettings } from './settings.ts'
import { checkOrder, type IncomingChunk, type TurnNeeds, turnMs, UploadTurn } from './upload-turn.ts'

export interface UploadNeeds extends TurnNeeds {
  readonly clock: Clock
  readonly disk: Pick<DiskSpace, 'isLow'>
  readonly settings: Pick<RegistrySettings, 'blobBytesMax'> & SessionLimits
}

type SessionLimits = Pick<RegistrySettings, 'uploadsPerRepositoryMax' | 'uploadsPerPrincipalMax'>

const idPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** An upload's id as it comes from a path. Anything else is an upload that does not exist. */
export function parseUploadId(text: string): UploadId {
  if (idPattern.test(text)) return text as UploadId
  throw new RegistryRefusal('upload-unknown', { id: text.slice(0, 64) })
}

/**
 * Opens a session. With `turn: 'ours'` the same request goes on writing to it: nothing stays open, so the limits on open
 * sessions do not apply, and the number of connections bounds these uploads.
 */
export async function startUpload(needs: UploadNeeds, owner: UploadOwner, turn: 'free' | 'ours'): Promise<Upload> {
  const { metadata, clock, settings } = needs
  if (needs.disk.isLow()) throw new RegistryRefusal('disk-low')
  const id = crypto.randomUUID() as string as UploadId
  const key = clock.freshId() as StorageKey
  return metadata.transaction(async (tables) => {
    const repository = await tables.repositories.ensure(owner)
    if (turn === 'free') await checkRoomForSession(tables, repository, owner.subject, settings)
    return tables.uploads.create(repository, owner.subject, id, key, turn === 'ours' ? turnMs : 0)
  })
}

/**
 * Within this distance of a limit, transactions wait for each other. The distance is at least the number of transactions
 * that run at the same time: 100 connections by PostgreSQL's default. For a limit below 200 it is half of the limit, so that
 * the first sessions do not wait, and at least 40: the connections of several servers.
 */
function roomBelow(max: number): number {
  return Math.max(40, Math.min(100, max / 2))
}

/**
 * Transactions that run at the same time do not see each other's sessions. Far below the limits all of them fit anyway.
 * Near a limit they count one after the other, so that the limits hold exactly.
 */
async function checkRoomForSession(
  tables: Tables,
  repository: RepositoryRow,
  subject: string,
  { uploadsPerRepositoryMax, uploadsPerPrincipalMax }: SessionLimits,
): Promise<void> {
  const isBelow = ({ ofRepository, ofSubject }: OpenUploads, roomOf: (max: number) => number) =>
    ofRepository + roomOf(uploadsPerRepositoryMax) < uploadsPerRepositoryMax &&
    ofSubject + roomOf(uploadsPerPrincipalMax) < uploadsPerPrincipalMax
  if (isBelow(await tables.uploads.countOpen(repository, subject), roomBelow)) return
  await tables.repositories.lock(repository)
  const open = await tables.uploads.countOpen(repository, subject)
  if (isBelow(open, () => 0)) return
  const isOwnLimit = open.ofSubject >= uploadsPerPrincipalMax
  const [max, of] = isOwnLimit ? [uploadsPerPrincipalMax, 'caller'] : [uploadsPerRepositoryMax, 'repository']
  throw new RegistryRefusal('too-many-uploads', { max, of })
}

/** How many bytes of the upload are safe here. */
export async function describeUpload(needs: UploadNeeds, owner: UploadOwner, id: UploadId): Promise<number> {
  return requireOpen(await needs.metadata.uploads.find(owner, id), id).open.object.sizeBytes
}

function requireOpen(state: UploadState | undefined, id: UploadId): Extract<UploadState, { open: Upload }> {
  if (state === undefined || 'done' in state) throw new RegistryRefusal('upload-unknown', { id })
  return state
}

/** Forgets the upload. A request that writes to it right now is stopped. */
export async function cancelUpload(needs: UploadNeeds, owner: UploadOwner, id: UploadId): Promise<void> {
  const isGone = await needs.metadata.transaction((tables) => tables.uploads.remove(owner, id))
  if (!isGone) throw new RegistryRefusal('upload-unknown', { id })
  await needs.writers.stop(id, 'the upload was cancelled')
}

type OperatorNeeds = { readonly metadata: Pick<MetadataStore, 'uploads' | 'transaction'> }

/** For operators: the open sessions, those first that were idle longest. */
export function listOpenUploads(
  { metadata }: OperatorNeeds,
  filter: UploadFilter,
  limit: number,
): Promise<ListedUpload[]> {
  return metadata.uploads.listOpen(filter, limit)
}

/** For operators: forgets an upload, whoever owns it. A request that writes to it ends when it next renews its turn. */
export async function cancelAnyUpload({ metadata }: OperatorNeeds, id: UploadId): Promise<void> {
  const isGone = await metadata.transaction((tables) => tables.uploads.removeAny(id))
  if (!isGone) throw new RegistryRefusal('upload-unknown', { id })
}

/** Appends a chunk; gives the new size. */
export async function appendToUpload(
  needs: UploadNeeds,
  owner: UploadOwner,
  id: UploadId,
  chunk: IncomingChunk,
): Promise<number> {
  const { open } = requireOpen(await needs.metadata.uploads.find(owner, id), id)
  await using turn = await takeTurn(needs, owner, open, chunk)
  if (turn === undefined) throw await refusalOfRival(needs, owner, id)
  return await turn.append(chunk)
}

/** A repeated closing request waits this long for the request that it repeats. */
const repeatWaitMs = 300_000

/**
 * Closes an upload. A client that lost the answer repeats the request: when the session is finished as the same digest, the
 * answer is the same; while another request still closes it as the same digest, this one waits for that one to end.
 */
export async function finishUpload(
  needs: UploadNeeds,
  owner: UploadOwner,
  id: UploadId,
  digest: Digest,
  chunk: IncomingChunk,
): Promise<void> {
  const { clock, metadata, writers: running } = needs
  const deadline = clock.steadyNow() + repeatWaitMs
  for (;;) {
    const state = await metadata.uploads.find(owner, id)
    if (state !== undefined && 'done' in state && state.done === digest) return
    const { open, closing } = requireOpen(state, id)
    const rival = running.find(id)
    const isRepeated = (rival === undefined ? closing : rival.closing) === digest
    if (!isRepeated) {
      await using turn = await takeTurn(needs, owner, open, chunk, digest)
      if (turn !== undefined) return await turn.commit(digest, chunk)
    }
    const isWorthWaiting = isRepeated || (await isClosedAs(needs, owner, id, digest))
    if (!isWorthWaiting || !(await awaitFirst(needs, owner, id, digest, chunk, deadline))) {
      throw await refusalOfRival(needs, owner, id)
    }
  }
}

/** Waits for as long as another request closes the session as this digest. False when this request may not wait on. */
async function awaitFirst(
  needs: UploadNeeds,
  owner: UploadOwner,
  id: UploadId,
  digest: Digest,
  { signal }: IncomingChunk,
  deadline: number,
): Promise<boolean> {
  const { clock, metadata, writers: running } = needs
  using place = running.waitFor(id, digest, signal)
  for (;;) {
    if (place === undefined || clock.steadyNow() >= deadline) return false
    await place.untilNextLook(deadline)
    const state = await metadata.uploads.find(owner, id)
    if (state === undefined || 'done' in state) return true
    const rival = running.find(id)
    if ((rival === undefined ? state.closing : rival.closing) !== digest) return true
  }
}

/** Whether somebody who took the turn just before us closes the session as this digest, or has done so. */
async function isClosedAs(needs: UploadNeeds, owner: UploadOwner, id: UploadId, digest: Digest): Promise<boolean> {
  const state = await needs.metadata.uploads.find(owner, id)
  if (state !== undefined && 'done' in state) return state.done === digest
  return (needs.writers.find(id)?.closing ?? state?.closing) === digest
}

/** A whole blob in one request: the session is opened, written and closed by it. */
export async function uploadAtOnce(
  needs: UploadNeeds,
  owner: UploadOwner,
  digest: Digest,
  chunk: IncomingChunk,
): Promise<void> {
  if (chunk.first !== undefined && chunk.first !== 0) throw new RegistryRefusal('upload-out-of-order', { received: 0 })
  const upload = await startUpload(needs, owner, 'ours')
  await using turn = new UploadTurn(needs, { owner, upload, entry: undefined })
  await turn.commit(digest, chunk, 'single')
}

/** Takes the turn at the session, unless another writer has it. Most requests out of order are refused before that. */
async function takeTurn(
  needs: UploadNeeds,
  owner: UploadOwner,
  seen: Upload,
  chunk: IncomingChunk,
  closing?: Digest,
): Promise<UploadTurn | undefined> {
  checkOrder(seen, chunk)
  const stop = (reason: string) => chunk.body.cancel(new RegistryRefusal('body-incomplete', { reason }))
  const entry = await needs.writers.enter(seen.id, stop, closing)
  if (entry === undefined) return undefined
  try {
    const upload = await claim(needs, owner, seen, closing)
    if (upload !== undefined) return new UploadTurn(needs, { owner, upload, entry })
  } catch (error) {
    entry.end()
    throw error
  }
  entry.end()
  return undefined
}

/** Where the answer of a claim is lost, the turn may be ours without our knowing, and nobody would give it back. */
async function claim(
  { metadata: { uploads } }: UploadNeeds,
  owner: UploadOwner,
  seen: Upload,
  closing: Digest | undefined,
): Promise<Upload | undefined> {
  try {
    return await uploads.claimTurn(owner, seen.id, turnMs, closing)
  } catch (error) {
    // By keeping it for no time, not by recording: if another writer took this turn, its bytes must stay.
    await uploads.renewTurn({ ...seen, epoch: seen.epoch + 1 }, 0).catch(() => false)
    throw error
  }
}

/** Why the turn could not be taken: the session is gone, or another request writes to it. */
async function refusalOfRival(needs: UploadNeeds, owner: UploadOwner, id: UploadId): Promise<RegistryRefusal> {
  requireOpen(await needs.metadata.uploads.find(owner, id), id)
  return new RegistryRefusal('upload-busy', { id })
}
