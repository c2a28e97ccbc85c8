import { systemClock } from '../../adapters/clock-system/system-clock.ts'
import type { RowCounts } from '../../adapters/metadata-sql/store-move/copy-rows.ts'
import type { SigningKeys } from '../../ports/signing-keys.ts'
import type { Amount } from '../../ports/store-move.ts'
import { claimBlobStore, nameStore } from '../blob-owner.ts'
import type { Config } from '../settings.ts'
import { type CopyOutcome, copyBlobs, type DamagedBlob } from './copy-blobs.ts'
import { type MoveEnd, openSource, openTarget, probeBlobs } from './move-ends.ts'
import {
  abortMove,
  confirmMove,
  findMove,
  releaseTarget,
  requireReservable,
  requireSameTarget,
  requireStarted,
  reserveTarget,
  type StartedMove,
  startMove,
} from './move-state.ts'

// `berth migrate-store`. The steps, each of which can be repeated:
//
//   reserve   the target: no server starts there
//   copy      blobs, while the source accepts changes
//   start     the move: the source accepts no more changes
//   copy rest the blobs that came meanwhile
//   copy rows all rows, from one snapshot, in one transaction of the target
//   confirm   in the source that the target is the registry
//   hand over the blob store to the target, if both ends use the same
//   release   the target: servers start there

export type MoveStep = 'reserve' | 'copy' | 'start' | 'copy rest' | 'copy rows' | 'confirm' | 'hand over' | 'release'

export interface MoveOptions {
  /** The number of blobs that are copied at the same time. */
  readonly atOnce: number
  /** Ends after the step `copy`. */
  readonly isPreparation: boolean
}

/** The move waits for each call. */
export interface MoveListener {
  /** Where the two ends are. */
  onPlaces(source: MoveEnd, target: MoveEnd, keepsBlobStore: boolean): void
  /** The step begins. */
  onStep(step: MoveStep): void | Promise<void>
  /** The source accepts no changes from now on, until it is moved or the move is aborted. */
  onStarted(): void
  onProgress(done: Amount, all: Amount): void
  /** So many more rows are in the target. */
  onRows(rows: number): void | Promise<void>
  /** A blob could not be copied, and is tried again. */
  onRetry(error: unknown): void
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
  readonly keepsBlobStore: boolean
  readonly options: MoveOptions
  readonly listener: MoveListener
}

/** How long to wait before a blob is tried again. */
const retryMs = 2_000

/** Moves a registry to the stores that `target` names. Can be killed at any moment and run again. */
export async function moveStores(
  source: Config,
  target: Config,
  options: MoveOptions,
  listener: MoveListener,
): Promise<MoveResult> {
  await using from = await openSource(source)
  await using to = await openTarget(target)
  return await moveBetween(from, to, options, listener)
}

/** As `moveStores`, between stores that are open. */
export async function moveBetween(
  source: MoveEnd,
  target: MoveEnd,
  options: MoveOptions,
  listener: MoveListener,
): Promise<MoveResult> {
  const started = await findMove(source.metadata)
  if (started !== undefined) {
    if (started.state === 'moving') listener.onStarted()
    if (options.isPreparation && started.state === 'moving') {
      throw new Error('the move itself has been started: run this without --prepare, or with --abort')
    }
    if ((await target.metadata.marks.find('moved-from')) === started.id) {
      await finish(source, target, started, listener)
      return { kind: 'moved already' }
    }
  }
  const [sourceId, targetId] = [await nameStore(source.metadata), await nameStore(target.metadata)]
  const keepsBlobStore = source.blobsPlace === target.blobsPlace
  const move: Move = { source, target, sourceId, targetId, keepsBlobStore, options, listener }
  await reserve(move, started)
  return copyAll(move, started)
}

/** Checks both ends first, so that a target which cannot be used is not reserved. */
async function reserve(move: Move, started: StartedMove | undefined): Promise<void> {
  const { source, target, sourceId, targetId, keepsBlobStore, listener } = move
  if (targetId === sourceId) throw new Error(describeSameRegistry(move))
  if (started !== undefined) requireSameTarget(started, targetId)
  listener.onPlaces(source, target, keepsBlobStore)
  await probeBlobs(source, target)
  await listener.onStep('reserve')
  await requireEmpty(move)
  await claimBlobStore(keepsBlobStore ? source : target)
  await reserveTarget(target.metadata, sourceId)
}

function describeSameRegistry({ keepsBlobStore }: Move): string {
  if (keepsBlobStore) return 'both settings files name the same stores'
  return 'both settings files name the same metadata store: rows are moved together with the blobs that they name, so name a new database too'
}

async function requireEmpty({ source, target, sourceId }: Move): Promise<void> {
  const reservedFor = await target.metadata.marks.find('move-from')
  requireReservable(reservedFor, sourceId)
  const occupied = [...(await target.metadata.listOccupied())]
  // The signing keys of an earlier attempt may be there. If they are files, they come before the rows.
  if (reservedFor === undefined && (await hasOtherKeys(source.signingKeys, target.signingKeys))) {
    occupied.push('signing keys')
  }
  if (occupied.length === 0) return
  throw new Error(`the target is not empty: it has ${occupied.join(', ')}; name stores that are empty`)
}

async function hasOtherKeys(source: SigningKeys, target: SigningKeys): Promise<boolean> {
  const known = new Set((await source.list()).map(({ kid }) => kid))
  return (await target.list()).some(({ kid }) => !known.has(kid))
}

async function copyAll(move: Move, startedBefore: StartedMove | undefined): Promise<MoveResult> {
  const { source, target, targetId, keepsBlobStore, options, listener } = move
  if (startedBefore === undefined) {
    const { damaged } = await copyMissingBlobs(move, 'copy')
    if (damaged.length > 0) return { kind: 'damaged', damaged }
    if (options.isPreparation) return { kind: 'prepared' }
  }
  await listener.onStep('start')
  const started = await startMove(source.metadata, {
    id: systemClock.freshId(),
    targetId,
    place: `${target.metadataPlace} and ${target.blobsPlace}`,
    keepsBlobStore,
  })
  listener.onStarted()
  const { damaged } = await copyMissingBlobs(move, 'copy rest')
  if (damaged.length > 0) return { kind: 'damaged', damaged }
  await listener.onStep('copy rows')
  await copySigningKeys(source.signingKeys, target.signingKeys)
  const rows = await target.metadata.takeRowsOf(source.metadata, {
    id: started.id,
    keepsBlobStore,
    checkStarted: (mark) => requireStarted(mark, started.id),
    onRows: (count) => listener.onRows(count),
  })
  await finish(source, target, started, listener)
  return { kind: 'moved', rows }
}

/** The rows are in the target. */
async function finish(
  source: MoveEnd,
  target: MoveEnd,
  { id, keepsBlobStore }: StartedMove,
  listener: MoveListener,
): Promise<void> {
  await listener.onStep('confirm')
  await confirmMove(source.metadata, id)
  if (keepsBlobStore) {
    await listener.onStep('hand over')
    await claimBlobStore(target, await nameStore(source.metadata))
  }
  await listener.onStep('release')
  await releaseTarget(target.metadata)
}

async function copyMissingBlobs(move: Move, step: 'copy' | 'copy rest'): Promise<CopyOutcome> {
  const { source, target, options, listener, keepsBlobStore } = move
  if (keepsBlobStore) return { copied: 0, damaged: [] }
  await listener.onStep(step)
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
    async onRetry(error) {
      listener.onRetry(error)
      await Bun.sleep(retryMs)
    },
  })
}

/** So that tokens which were signed before the move are still valid after it. */
async function copySigningKeys(from: SigningKeys, to: SigningKeys): Promise<void> {
  const known = new Set((await to.list()).map(({ kid }) => kid))
  for (const key of await from.list()) if (!known.has(key.kid)) await to.add(key)
}

/** Opens the source for changes again. Gives the move that was aborted, or undefined if none had been started. */
export async function abortMoveOf(config: Config, isForced: boolean): Promise<StartedMove | undefined> {
  await using source = await openSource(config)
  return await abortMove(source.metadata, isForced)
}
