import { systemClock } from '../adapters/clock-system/system-clock.ts'
import type { RowCounts } from '../adapters/metadata-sql/copy-rows.ts'
import type { Amount } from '../ports/moves.ts'
import type { SigningKeys } from '../ports/signing-keys.ts'
import { type CopyOutcome, copyBlobs, type DamagedBlob } from '../registry/store-move.ts'
import { type MovableStores, openMovableStores, ownBlobs } from './build.ts'
import { type Freeze, freeze, isFrozenFor, markMoved, nameStore, readFreeze } from './move-marks.ts'
import type { Config } from './settings.ts'
import { describeBlobs, describeMetadata } from './store-places.ts'

export interface MoveOptions {
  /** So many blobs at a time. */
  readonly atOnce: number
  /** Only the bytes, and the registry goes on as before: the long part, ahead of the rest. */
  readonly isPreparation: boolean
}

export interface MoveListener {
  onStep(step: string): void
  /** From now on the registry takes no changes, however this ends. */
  onFrozen(): void
  /** Of the blobs that there were when counting began. */
  onProgress(done: Amount, all: Amount): void
  onRows(rows: number): void
  onTrouble(error: unknown): void
}

export type MoveResult =
  | { readonly kind: 'prepared' | 'moved already' }
  | { readonly kind: 'moved'; readonly rows: RowCounts }
  | { readonly kind: 'damaged'; readonly damaged: readonly DamagedBlob[] }

interface Move {
  readonly source: MovableStores
  readonly target: MovableStores
  readonly sourceId: string
  readonly targetId: string
  readonly place: string
  /** Both name the same blob store: no byte is copied. */
  readonly keepsBlobStore: boolean
  readonly options: MoveOptions
  readonly listener: MoveListener
}

/** A count over all rows may take longer than a request may. */
const statementMs = 3_600_000
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
  const from = await open(source, true)
  try {
    const to = await open(target, false)
    try {
      return await moveBetween(from, to, source, target, options, listener)
    } finally {
      await close(to)
    }
  } finally {
    await close(from)
  }
}

/** Lets the source take changes again. Gives where it was going, or undefined when it takes changes already. */
export async function abortMove(config: Config, isForced: boolean): Promise<Freeze | undefined> {
  const stores = await open(config, true)
  try {
    const frozen = await readFreeze(stores.metadata)
    if (frozen === undefined) return undefined
    if (frozen.isMoved && !isForced) {
      const sharing = frozen.keepsBlobStore
        ? '; both have the same blob store, and would remove bytes of each other'
        : ''
      throw new Error(
        `the registry was moved to ${frozen.place}${sharing}: --force, if nothing has served it from there`,
      )
    }
    if (frozen.keepsBlobStore) await ownBlobs(stores, await nameStore(stores.metadata), frozen.to)
    await stores.metadata.transaction(({ marks }) => marks.remove('read-only'))
    return frozen
  } finally {
    await close(stores)
  }
}

function open(config: Config, mustBeThere: boolean): Promise<MovableStores> {
  return openMovableStores({ ...config, databaseStatementMs: statementMs }, { mustBeThere })
}

async function close({ metadata, blobs }: MovableStores): Promise<void> {
  await metadata.close()
  await blobs.close()
}

async function moveBetween(
  source: MovableStores,
  target: MovableStores,
  from: Config,
  to: Config,
  options: MoveOptions,
  listener: MoveListener,
): Promise<MoveResult> {
  const place = `${describeMetadata(to)} and ${describeBlobs(to)}`
  const keepsBlobStore = describeBlobs(from) === describeBlobs(to)
  const [sourceId, targetId] = [await nameStore(source.metadata), await nameStore(target.metadata)]
  if (sourceId === targetId) throw new Error(sameMetadata(keepsBlobStore))
  const move = { source, target, sourceId, targetId, place, keepsBlobStore, options, listener }
  const frozen = await readFreeze(source.metadata)
  if (frozen !== undefined && frozen.to !== targetId) {
    throw new Error(`the registry ${frozen.isMoved ? 'was' : 'is being'} moved to ${frozen.place}`)
  }
  if (frozen !== undefined && (await target.metadata.marks.find('moved-from')) === frozen.move) {
    await markMoved(source.metadata, frozen.move)
    await ownBlobs(target, targetId, sourceId)
    return { kind: 'moved already' }
  }
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
    throw new Error('a move of another registry to the target has begun')
  }
  const occupied = [...(await target.metadata.listOccupied())]
  if (claimedBy === undefined && (await hasOwnKeys(source.signingKeys, target.signingKeys)))
    occupied.push('signing keys')
  if (occupied.length > 0) throw new Error(`the target is not empty: it has ${occupied.join(', ')}`)
  if (claimedBy === undefined) await target.metadata.transaction(({ marks }) => marks.put('move-from', sourceId))
  if (!keepsBlobStore) await ownBlobs(target, targetId)
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
  const { source, target, sourceId, targetId, keepsBlobStore, listener } = move
  listener.onStep('the registry takes no changes from now on, and goes on serving')
  const frozen = await freeze(source.metadata, move, systemClock)
  listener.onFrozen()
  const { damaged } = await copyBytes(move, 'copying the blobs that came meanwhile')
  if (damaged.length > 0) return { kind: 'damaged', damaged }
  listener.onStep('copying all rows')
  await copySigningKeys(source.signingKeys, target.signingKeys)
  const rows = await target.metadata.takeRowsOf(source.metadata, {
    name: frozen.move,
    keepsBlobStore,
    onRows: (rows) => listener.onRows(rows),
    isStillOn: (mark) => isFrozenFor(mark, frozen.move),
  })
  // In this order: bytes change hands only once nobody can take changes at the old place any more.
  await markMoved(source.metadata, frozen.move)
  await ownBlobs(target, targetId, sourceId)
  return { kind: 'moved', rows }
}

/** Tokens that were signed before are good afterwards. */
async function copySigningKeys(from: SigningKeys, to: SigningKeys): Promise<void> {
  const there = new Set((await to.list()).map(({ kid }) => kid))
  for (const key of await from.list()) if (!there.has(key.kid)) await to.add(key)
}
