import type { RunningHash } from '../lib/hashing.ts'
import type { Digest, DigestAlgorithm } from '../oci/digest.ts'
import { type Refusal, RegistryRefusal, Spoiled } from '../oci/errors.ts'
import type { BlobStore, StorageKey } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { DiskSpace } from '../ports/disk-space.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryRow } from '../ports/repositories.ts'
import type { OpenUploads, Upload, UploadId, UploadOwner, UploadState } from '../ports/uploads.ts'
import type { RunningUploads } from './running-uploads.ts'
import type { RegistrySettings } from './settings.ts'
import { type IncomingChunk, turnMs, type WritingNeeds, WritingTurn } from './upload-writing.ts'

export interface UploadNeeds extends WritingNeeds {
  readonly blobs: Pick<BlobStore, 'openWriter' | 'read'>
  readonly metadata: Pick<MetadataStore, 'uploads' | 'transaction'>
  readonly clock: Clock
  readonly running: RunningUploads
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
    return tables.uploads.begin(repository, owner.subject, id, key, turn === 'ours' ? turnMs : 0)
  })
}

/** More transactions than run at the same time, by PostgreSQL's default for `max_connections`. */
const transactionsAtOnceMax = 100

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
  const isBelow = ({ ofRepository, ofSubject }: OpenUploads, room: number) =>
    ofRepository + room < uploadsPerRepositoryMax && ofSubject + room < uploadsPerPrincipalMax
  if (isBelow(await tables.uploads.countOpen(repository, subject), transactionsAtOnceMax)) return
  await tables.repositories.serialize(repository)
  const open = await tables.uploads.countOpen(repository, subject)
  if (isBelow(open, 0)) return
  const isOwnLimit = open.ofSubject >= uploadsPerPrincipalMax
  const [max, of] = isOwnLimit ? [uploadsPerPrincipalMax, 'caller'] : [uploadsPerRepositoryMax, 'repository']
  throw new RegistryRefusal('too-many-uploads', { max, of })
}

/** How many bytes of the upload are safe here. */
export async function describeUpload(needs: UploadNeeds, owner: UploadOwner, id: UploadId): Promise<number> {
  return requireOpen(await needs.metadata.uploads.find(owner, id), id).object.sizeBytes
}

function requireOpen(state: UploadState | undefined, id: UploadId): Upload {
  if (state === undefined || 'done' in state) throw new RegistryRefusal('upload-unknown', { id })
  return state.open
}

/** Forgets the upload. A request that writes to it right now is stopped. */
export async function cancelUpload(needs: UploadNeeds, owner: UploadOwner, id: UploadId): Promise<void> {
  const isGone = await needs.metadata.transaction((tables) => tables.uploads.discard(owner, id))
  if (!isGone) throw new RegistryRefusal('upload-unknown', { id })
  await needs.running.stop(id)
}

/**
 * Appends a chunk; gives the new size. Whatever ends the chunk early (the client gone, too slow, the process going down),
 * the bytes that came are made safe and recorded, so that the upload's status tells the truth.
 */
export async function appendToUpload(
  needs: UploadNeeds,
  owner: UploadOwner,
  id: UploadId,
  chunk: IncomingChunk,
): Promise<number> {
  return inTurn(needs, owner, id, chunk, async (upload, onProgress) => {
    const turn = await beginTurn(needs, owner, upload, needs.running.takeHash(upload), 'sha256')
    try {
      let fault: unknown
      try {
        await turn.receive(chunk, onProgress)
      } catch (error) {
        fault = error
      }
      try {
        // No settling mends what can never become whole.
        if (fault instanceof Spoiled) throw fault
        await settle(needs, turn, fault)
      } catch (error) {
        // Nothing was recorded, so the session stands where it stood; what went wrong first is what the caller must hear.
        await turn.writer.rewind()
        await endTurn(needs, owner, upload, error)
        throw fault ?? error
      }
      if (fault !== undefined) throw fault
      return turn.sizeBytes
    } finally {
      await turn.writer.close()
    }
  })
}

/** Opens the object for writing. If that fails, the turn ends. */
export async function beginTurn(
  needs: UploadNeeds,
  owner: UploadOwner,
  upload: Upload,
  hash: RunningHash | undefined,
  algorithm: DigestAlgorithm,
): Promise<WritingTurn> {
  try {
    return await WritingTurn.begin(needs, upload, hash, algorithm)
  } catch (error) {
    await endTurn(needs, owner, upload, error)
    throw error
  }
}

/**
 * Ends a turn that changed nothing; and the session with it, where the store says that this can never become whole. Whoever
 * has lost the turn ends nothing: the parts of another writer may be sound.
 */
export async function endTurn(needs: UploadNeeds, owner: UploadOwner, upload: Upload, fault: unknown): Promise<void> {
  const isOver = fault instanceof Spoiled && (await needs.metadata.uploads.isOpen(upload).catch(() => false))
  if (isOver) await endSession(needs, owner, upload.id)
  else await giveBack(needs, upload)
}

export async function endSession(needs: UploadNeeds, owner: UploadOwner, id: UploadId): Promise<void> {
  await needs.metadata.transaction((tables) => tables.uploads.discard(owner, id))
}

/** Ends a turn that changed nothing. If the metadata store cannot be told, the turn runs out by itself. */
export async function giveBack(needs: UploadNeeds, upload: Upload): Promise<void> {
  await needs.metadata.uploads.advance(upload, upload.object, upload.receivedDigest).catch(() => false)
}

/** Records what a turn brought, and gives the turn back. */
async function settle(needs: UploadNeeds, turn: WritingTurn, fault: unknown): Promise<void> {
  const { upload } = turn
  const isKept = isWorthKeeping(fault)
  if (!isKept) await turn.writer.rewind()
  const object = isKept ? await turn.writer.flush() : upload.object
  const digest = isKept ? turn.digestSoFar() : upload.receivedDigest
  if (!(await needs.metadata.uploads.advance(upload, object, digest))) {
    throw new RegistryRefusal('upload-unknown', { id: upload.id })
  }
  if (isKept && turn.hash !== undefined) needs.running.keepHash(upload, object.sizeBytes, turn.hash)
}

const keptFaults: ReadonlySet<Refusal> = new Set(['body-incomplete', 'body-too-slow', 'disk-low'])

/**
 * The bytes of a broken connection are kept, and those that came before the disk was nearly full. Those that contradict what their sender announced are not, nor those that
 * the store failed to take: nobody knows how many of them it has.
 */
function isWorthKeeping(fault: unknown): boolean {
  if (fault === undefined) return true
  return fault instanceof RegistryRefusal && keptFaults.has(fault.refusal)
}

/** Finds the session, checks the order, and takes the turn for as long as `act` runs. */
export async function inTurn<T>(
  needs: UploadNeeds,
  owner: UploadOwner,
  id: UploadId,
  chunk: IncomingChunk,
  act: (upload: Upload, onProgress: () => void) => Promise<T>,
): Promise<T> {
  // A look before the turn is taken: most refusals need no write.
  const seen = requireOpen(await needs.metadata.uploads.find(owner, id), id)
  checkOrder(seen, chunk)
  const busy = new RegistryRefusal('upload-busy', { id })
  const entry = await needs.running.enter(id, () => chunk.body.cancel(new RegistryRefusal('body-incomplete')))
  if (entry === undefined) throw busy
  try {
    const upload = await takeTurn(needs, owner, seen)
    if (upload === undefined) {
      requireOpen(await needs.metadata.uploads.find(owner, id), id)
      throw busy
    }
    try {
      checkOrder(upload, chunk)
    } catch (error) {
      await giveBack(needs, upload)
      throw error
    }
    return await act(upload, entry.progress)
  } catch (error) {
    // There is nothing to go on with: clients begin a new upload.
    throw error instanceof Spoiled ? new RegistryRefusal('upload-unknown', { id }) : error
  } finally {
    entry.end()
  }
}

/** Where the answer is lost, the turn may be ours without our knowing, and nobody would give it back. */
async function takeTurn(needs: UploadNeeds, owner: UploadOwner, seen: Upload): Promise<Upload | undefined> {
  const { uploads } = needs.metadata
  try {
    return await uploads.claim(owner, seen.id, turnMs)
  } catch (error) {
    // By keeping it for no time, not by recording: if somebody else took this turn, his bytes must stay; the epoch fences him.
    await uploads.keepTurn({ ...seen, epoch: seen.epoch + 1 }, 0).catch(() => false)
    throw error
  }
}

/** distribution-spec, "Pushing a blob in chunks": "Chunks MUST be uploaded in order". */
function checkOrder(upload: Upload, { first }: IncomingChunk): void {
  if (first === undefined || first === upload.object.sizeBytes) return
  throw new RegistryRefusal('upload-out-of-order', { received: upload.object.sizeBytes })
}

/** The digest as which a finished session ended, so that a repeated closing request gets the same answer. */
export async function findFinished(needs: UploadNeeds, owner: UploadOwner, id: UploadId): Promise<Digest | undefined> {
  const state = await needs.metadata.uploads.find(owner, id)
  return state !== undefined && 'done' in state ? state.done : undefined
}
