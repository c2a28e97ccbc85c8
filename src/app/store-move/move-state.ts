import type { MetadataStore } from '../../ports/metadata-store.ts'

// How far a move has come is stored at both ends:
//
//   source  `read-only`: the move's id, its target and its state. While this mark exists the source accepts no changes.
//   target  `move-from`: the id of the source's metadata store. While this mark exists no server starts on the target.
//           `moved-from`: the id of the move that brought the rows. Written in the transaction that writes the rows.
//
// docs/decisions/0018-moving-stores.md has the table of states and events.

/** What the source knows of a move that has closed it for changes. */
export interface StartedMove {
  /** Random: a move that is started again after an abort has another id. */
  readonly id: string
  /** The id of the target's metadata store. */
  readonly targetId: string
  /** Where the target is, for people. */
  readonly place: string
  /** Both ends use the same blob store: no blob is copied. */
  readonly keepsBlobStore: boolean
  /** `moving`: the source accepts changes again after an abort. `moved`: the target is the registry. */
  readonly state: 'moving' | 'moved'
}

type Metadata = Pick<MetadataStore, 'marks' | 'transaction'>

/** The move was aborted by another process while it was running. */
export class MoveAborted extends Error {
  override readonly name = 'MoveAborted'
}

export async function findMove(source: Pick<Metadata, 'marks'>): Promise<StartedMove | undefined> {
  return parseMove(await source.marks.find('read-only'))
}

/** From the text of the mark `read-only`. */
function parseMove(text: string | undefined): StartedMove | undefined {
  if (text === undefined) return undefined
  const { move, to, place, keepsBlobStore, state }: Partial<Record<string, unknown>> = JSON.parse(text)
  if (state !== 'moving' && state !== 'moved') {
    throw new Error(
      `an older version of Berth has started a move to ${String(place)}: run that version's \`berth migrate-store\` to finish or abort it`,
    )
  }
  return {
    id: String(move),
    targetId: String(to),
    place: String(place),
    keepsBlobStore: keepsBlobStore === true,
    state,
  }
}

function formatMove({ id, targetId, place, keepsBlobStore, state }: StartedMove): string {
  return JSON.stringify({ move: id, to: targetId, place, keepsBlobStore, state })
}

/** Throws unless `text`, the source's mark `read-only`, is that of this move. */
export function requireStarted(text: string | undefined, id: string): StartedMove {
  const move = parseMove(text)
  if (move?.id === id) return move
  throw new MoveAborted('the move was aborted by another process')
}

/** Throws unless a move that has been started goes to this target. */
export function requireSameTarget(move: StartedMove, targetId: string): void {
  if (move.state === 'moved') throw new Error(`the registry was moved to ${move.place}`)
  if (move.targetId !== targetId) throw new Error(`the registry is being moved to ${move.place}`)
}

/**
 * Closes the source for changes. When this resolves, no transaction that could change the source is running, and none can
 * begin. A move to the same target that was started before is continued.
 */
export function startMove(source: Metadata, fresh: Omit<StartedMove, 'state'>): Promise<StartedMove> {
  return source.transaction(async ({ marks }) => {
    await marks.lockExclusively()
    const known = parseMove(await marks.find('read-only'))
    if (known !== undefined) {
      requireSameTarget(known, fresh.targetId)
      return known
    }
    const started: StartedMove = { ...fresh, state: 'moving' }
    await marks.set('read-only', formatMove(started))
    return started
  })
}

/** From now on the target is the registry. Fails if the move was aborted. Can be repeated. */
export async function confirmMove(source: Metadata, id: string): Promise<void> {
  await source.transaction(async ({ marks }) => {
    await marks.lockExclusively()
    const move = requireStarted(await marks.find('read-only'), id)
    await marks.set('read-only', formatMove({ ...move, state: 'moved' }))
  })
}

/** Reserves the target for this source: no server starts there, and no other registry is moved there. Can be repeated. */
export async function reserveTarget(target: Metadata, sourceId: string): Promise<void> {
  await target.transaction(async ({ marks }) => {
    await marks.lockExclusively()
    requireReservable(await marks.find('move-from'), sourceId)
    if ((await marks.find('moved-from')) !== undefined) throw new Error('the target holds the rows of a move already')
    await marks.set('move-from', sourceId)
  })
}

/** Throws if the target's mark `move-from` names another source. */
export function requireReservable(reservedFor: string | undefined, sourceId: string): void {
  if (reservedFor === undefined || reservedFor === sourceId) return
  throw new Error('another registry is being moved to the target: name stores that are empty')
}

/** From now on servers start on the target. Only after `confirmMove`. Can be repeated. */
export async function releaseTarget(target: Metadata): Promise<void> {
  await target.transaction(({ marks }) => marks.remove('move-from'))
}

/**
 * Opens the source for changes again. Gives the move, or undefined if none has been started. A process that is still
 * running the move cannot finish it from now on.
 */
export function abortMove(source: Metadata, isForced: boolean): Promise<StartedMove | undefined> {
  return source.transaction(async ({ marks }) => {
    await marks.lockExclusively()
    const move = parseMove(await marks.find('read-only'))
    if (move === undefined) return undefined
    if (move.state === 'moved') requireAbortable(move, isForced)
    await marks.remove('read-only')
    return move
  })
}

function requireAbortable({ place, keepsBlobStore }: StartedMove, isForced: boolean): void {
  if (keepsBlobStore) {
    throw new Error(
      `the registry was moved to ${place}, and both places use the same blob store: to go back, move that registry to an empty database`,
    )
  }
  if (isForced) return
  throw new Error(
    `the registry was moved to ${place}: if no server has accepted changes there, go back with --abort --force; otherwise move that registry back to empty stores`,
  )
}
