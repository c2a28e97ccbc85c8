import { systemClock } from '../../adapters/clock-system/system-clock.ts'
import type { RowCounts } from '../../adapters/metadata-sql/store-move/copy-rows.ts'
import type { SigningKeys } from '../../ports/signing-keys.ts'
import type { Amount } from '../../ports/store-move.ts'
import type { Config } from '../settings.ts'
import { claimBlobStore } from '../stores.ts'
import { type CopyOutcome, copyBlobs, type DamagedBlob } from './copy-blobs.ts'
import { closeEnd, type MoveEnd, openSource, openTarget, probeBlobs } from './move-ends.ts'
import {
  beginPhase,
  checkStillOn,
  type Freeze,
  freeze,
  MoveAborted,
  nameStore,
  readFreeze,
  requireGoal,
  requireStillOn,
} from './move-state.ts'

export interface MoveOptions {
  /** So many blobs at a time. */
  readonly atOnce: number
  /** Only the bytes, and the registry goes on as before: the long part, ahead of the rest. */
  readonly isPreparation: boolean
}

export interface MoveListener {
  onStep(step: string): void
  /** From now on the registry takes no changes, until it is moved or the move is aborted. */
  onFrozen(): void
  /** From now on only `--force` gets it back: the rows may be in the target. */
  onRowsBegin(): void
  /** Of the blobs that there were when counting began. */
  onProgress(done: Amount, all: Amount): void
  onRows(rows: number): void | Promise<void>
  onTrouble(error: unknown): void
}

export type MoveResult =
  | { readonly kind: 'prepared' | 'moved already' }
  | { readonly kind: 'moved'; readonly rows: RowCounts }
  | { readonly kind: 'damaged'; readonly damaged: readonly DamagedBlob[] }

interface Move {
  readonly source: MoveEnd
  readonly target: MoveEnd
  readonly sourceId: string
  readonly targetId: string
  readonly place: string
  /** Both name the same blob store: no byte is copied. */
  readonly keepsBlobStore: boolean
  readonly options: MoveOptions
  readonly listener: MoveListener
}

const pauseMs = 2_000

/**
 * Takes a registry to other stores while it serves: the bytes first, with the registry as it is; then it takes no more
 * changes, the last bytes follow, and all rows go in one transaction. Can be killed anywhere and run again.
 */
export async function moveStores(
  source: Config,
  target: Config,
  options: MoveOptions,
  listener: MoveListener,
): Promise<MoveResult> {
  const from = await openSource(source)
  try {
    const to = await openTarget(target)
    try {
      return await moveBetween(from, to, options, listener)
    } finally {
      await closeEnd(to)
    }
  } finally {
    await closeEnd(from)
  }
}

/** As `moveStores`, between stores that are open. */
export async function moveBetween(
  source: MoveEnd,
  target: MoveEnd,
  options: MoveOptions,
  listener: MoveListener,
): Promise<MoveResult> {
  const place = `${target.metadataPlace} and ${target.blobsPlace}`
  const keepsBlobStore = source.blobsPlace === target.blobsPlace
  const [sourceId, targetId] = [await nameStore(source.metadata), await nameStore(target.metadata)]
  if (sourceId === targetId) throw new Error(sameMetadata(keepsBlobStore))
  const move = { source, target, sourceId, targetId, place, keepsBlobStore, options, listener }
  const frozen = await readFreeze(source.metadata)
  if (frozen !== undefined) {
    requireGoal(frozen, targetId)
    if (options.isPreparation && frozen.phase !== 'moved')
      throw new Error('the move itself has begun: run this without --prepare, or with --abort')
    listener.onFrozen()
    if (frozen.phase !== 'bytes') listener.onRowsBegin()
    if ((await target.metadata.marks.find('moved-from')) === frozen.move) {
      await handOver(move, frozen)
      return { kind: 'moved already' }
    }
  }
  listener.onStep(`from ${source.metadataPlace} and ${source.blobsPlace}`)
  listener.onStep(`to ${place}${keepsBlobStore ? ': the blobs stay where they are' : ''}`)
  await probeBlobs(source, target)
  await claimTarget(move)
  if (frozen === undefined) {
    const { damaged } = await copyBytes(move, 'copying blobs; the registry goes on as before')
    if (damaged.length > 0) return { kind: 'damaged', damaged }
    if (options.isPreparation) return { kind: 'prepared' }
  }
  return finish(move)
}

function sameMetadata(keepsBlobStore: boolean): string {
  if (keepsBlobStore) return 'both settings files name the same stores'
  return 'both settings files name the same metadata: bytes are moved together with the rows that name them, so name a new database too'
}

/** From now on the target is this move's alone: no server begins to work there, and no other move. */
async function claimTarget({ source, target, sourceId, targetId, keepsBlobStore }: Move): Promise<void> {
  const claimedBy = await target.metadata.marks.find('move-from')
  if (claimedBy !== undefined && claimedBy !== sourceId) {
    throw new Error('a move of another registry to the target has begun: name stores that are empty')
  }
  const occupied = [...(await target.metadata.listOccupied())]
  if (claimedBy === undefined && (await hasOwnKeys(source.signingKeys, target.signingKeys)))
    occupied.push('signing keys')
  if (occupied.length > 0) {
    throw new Error(`the target is not empty: it has ${occupied.join(', ')}; name stores that are empty`)
  }
  if (!keepsBlobStore) await claimBlobStore(target, targetId)
  if (claimedBy === undefined) await target.metadata.transaction(({ marks }) => marks.put('move-from', sourceId))
}

async function hasOwnKeys(source: SigningKeys, target: SigningKeys): Promise<boolean> {
  const known = new Set((await source.list()).map(({ kid }) => kid))
  return (await target.list()).some(({ kid }) => !known.has(kid))
}

async function copyBytes(move: Move, step: string): Promise<CopyOutcome> {
  const { source, target, options, listener, keepsBlobStore } = move
  if (keepsBlobStore) return { copied: 0, damaged: [] }
  listener.onStep(step)
  const movable = source.metadata.movableBlobs()
  const copied = target.metadata.copiedObjects()
  const [all, { ...done }] = [await movable.measure(), await copied.measure()]
  const report = () => listener.onProgress(done, all)
  report()
  const needs = { from: { movable, blobs: source.blobs }, to: { copied, blobs: target.blobs }, clock: systemClock }
  return copyBlobs(needs, options.atOnce, {
    onBytes(bytes) {
      Object.assign(done, { bytes: done.bytes + bytes })
      report()
    },
    onBlob() {
      Object.assign(done, { blobs: done.blobs + 1 })
      report()
    },
    async onTrouble(error) {
      listener.onTrouble(error)
      await Bun.sleep(pauseMs)
    },
  })
}

async function finish(move: Move): Promise<MoveResult> {
  const { source, target, keepsBlobStore, listener } = move
  listener.onStep('the registry takes no changes from now on, and goes on serving')
  const frozen = await freeze(source.metadata, move, systemClock)
  listener.onFrozen()
  const { damaged } = await copyBytes(move, 'copying the blobs that came meanwhile')
  if (damaged.length > 0) return { kind: 'damaged', damaged }
  listener.onStep('copying all rows')
  await copySigningKeys(source.signingKeys, target.signingKeys)
  await beginPhase(source.metadata, frozen.move, 'rows')
  listener.onRowsBegin()
  const rows = await target.metadata.takeRowsOf(source.metadata, {
    name: frozen.move,
    keepsBlobStore,
    onRows: (rows) => listener.onRows(rows),
    checkStillOn: (mark) => requireStillOn(mark, frozen.move),
  })
  await handOver(move, frozen)
  return { kind: 'moved', rows }
}

/**
 * Once all is in the target. In this order: bytes change hands only when nobody can take changes at the old place any more,
 * and a server begins to work at the new one only when they have. Whoever aborts the move says so before he takes the bytes
 * back, so one of the two sees the other.
 */
async function handOver({ source, target, sourceId, targetId, keepsBlobStore }: Move, { move }: Freeze): Promise<void> {
  try {
    await beginPhase(source.metadata, move, 'moved')
    await claimBlobStore(target, targetId, sourceId)
    await checkStillOn(source.metadata, move)
  } catch (error) {
    if (!(error instanceof MoveAborted)) throw error
    if (keepsBlobStore) await claimBlobStore(source, sourceId, targetId)
    throw new MoveAborted(`${error.message}: the copy is of no use, and no server starts on it`, { cause: error })
  }
  await target.metadata.transaction(({ marks }) => marks.remove('move-from'))
}

/** Tokens that were signed before are good afterwards. */
async function copySigningKeys(from: SigningKeys, to: SigningKeys): Promise<void> {
  const there = new Set((await to.list()).map(({ kid }) => kid))
  for (const key of await from.list()) if (!there.has(key.kid)) await to.add(key)
}
