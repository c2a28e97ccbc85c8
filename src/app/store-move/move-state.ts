import type { Clock } from '../../ports/clock.ts'
import type { MetadataStore } from '../../ports/metadata-store.ts'

/**
 * How far a move has come, noted before it goes there: bytes are copied; rows, which may all be in the target by now; all
 * is there, and from now on a server may begin to work on it.
 */
export type MovePhase = 'bytes' | 'rows' | 'moved'

/** Why a store takes no changes: the text of its mark `read-only`. */
export interface Freeze {
  /** The move's own name. */
  readonly move: string
  /** The name of the store that it goes to, and where that is, in words for people. */
  readonly to: string
  readonly place: string
  readonly keepsBlobStore: boolean
  readonly phase: MovePhase
  /** The move goes on no more; changes are taken again once the blob store is known to be ours. */
  readonly isAborted: boolean
}

type Marked = Pick<MetadataStore, 'marks' | 'transaction'>

/** Somebody has aborted the move while it was running. */
export class MoveAborted extends Error {
  override readonly name = 'MoveAborted'
}

export async function readFreeze(metadata: Pick<MetadataStore, 'marks'>): Promise<Freeze | undefined> {
  const text = await metadata.marks.find('read-only')
  return text === undefined ? undefined : parseFreeze(text)
}

function parseFreeze(text: string): Freeze {
  const { move, to, place, keepsBlobStore, phase, isAborted }: Partial<Record<keyof Freeze, unknown>> = JSON.parse(text)
  return {
    move: String(move),
    to: String(to),
    place: String(place),
    keepsBlobStore: keepsBlobStore === true,
    phase: phase === 'bytes' || phase === 'rows' ? phase : 'moved',
    isAborted: isAborted === true,
  }
}

/** The mark, unless it is no longer this move's. */
export function requireStillOn(mark: string | undefined, move: string): Freeze {
  const freeze = mark === undefined ? undefined : parseFreeze(mark)
  if (freeze?.move === move && !freeze.isAborted) return freeze
  throw new MoveAborted('the move was aborted meanwhile')
}

/**
 * From when this resolves nothing changes any more that anybody could see, no transaction that could change it is running,
 * and no server that does not know this mark can start. A move that goes on keeps its name.
 */
export function freeze(
  metadata: Pick<Marked, 'transaction'>,
  { targetId, place, keepsBlobStore }: Pick<Freeze, 'place' | 'keepsBlobStore'> & { readonly targetId: string },
  clock: Pick<Clock, 'freshId'>,
): Promise<Freeze> {
  return metadata.transaction(async ({ marks }) => {
    await marks.holdUpOthers()
    const known = await marks.find('read-only')
    if (known !== undefined) return requireGoal(parseFreeze(known), targetId)
    const phase: MovePhase = 'bytes'
    const frozen = { move: clock.freshId(), to: targetId, place, keepsBlobStore, phase, isAborted: false }
    await marks.put('read-only', JSON.stringify(frozen))
    if ((await marks.find('aborted-to')) === targetId) await marks.remove('aborted-to')
    await marks.keepOlderOut()
    return frozen
  })
}

/** Whether a move that has begun is the one to this target. */
export function requireGoal(frozen: Freeze, targetId: string): Freeze {
  if (frozen.isAborted) {
    throw new Error('the move is being aborted: run `berth migrate-store --abort` once more')
  }
  if (frozen.to === targetId) return frozen
  throw new Error(`the registry ${frozen.phase === 'moved' ? 'was' : 'is being'} moved to ${frozen.place}`)
}

/** Before anything is done that belongs to the phase. Refused where somebody has aborted the move meanwhile. */
export async function beginPhase(metadata: Pick<Marked, 'transaction'>, move: string, phase: MovePhase): Promise<void> {
  await metadata.transaction(async ({ marks }) => {
    await marks.holdUpOthers()
    const frozen = requireStillOn(await marks.find('read-only'), move)
    if (frozen.phase !== 'moved') await marks.put('read-only', JSON.stringify({ ...frozen, phase }))
  })
}

/** As of a moment after all that was done before. */
export async function checkStillOn(metadata: Pick<Marked, 'transaction'>, move: string): Promise<void> {
  await metadata.transaction(async ({ marks }) => requireStillOn(await marks.findLocked('read-only'), move))
}

/**
 * From when this resolves the move goes no further, wherever it runs. Gives what it was, or undefined where there is none;
 * `judge` throws when it has come too far. One that was aborted before, and did not get to its end, is judged already.
 */
export function markAborted(
  metadata: Pick<Marked, 'transaction'>,
  judge: (frozen: Freeze) => void,
): Promise<Freeze | undefined> {
  return metadata.transaction(async ({ marks }) => {
    await marks.holdUpOthers()
    const known = await marks.find('read-only')
    if (known === undefined) return undefined
    const frozen = parseFreeze(known)
    if (!frozen.isAborted) judge(frozen)
    await marks.put('read-only', JSON.stringify({ ...frozen, isAborted: true }))
    return frozen
  })
}

/** The end of a move that was aborted, unless another has begun meanwhile. */
export async function thaw(metadata: Pick<Marked, 'transaction'>, move: string): Promise<void> {
  await metadata.transaction(async ({ marks }) => {
    await marks.holdUpOthers()
    const known = await marks.find('read-only')
    const frozen = known === undefined ? undefined : parseFreeze(known)
    if (frozen?.move !== move) return
    // The move may be claiming the blob store at this moment, and die before it sees that it was aborted.
    if (frozen.keepsBlobStore) await marks.put('aborted-to', frozen.to)
    await marks.remove('read-only')
    await marks.letOlderIn()
  })
}

/** A name that no other store has, made when it is first asked for. */
export async function nameStore(metadata: Marked): Promise<string> {
  const name = await metadata.marks.find('store-id')
  if (name !== undefined) return name
  return metadata.transaction(async ({ marks }) => {
    await marks.holdUpOthers()
    const known = await marks.find('store-id')
    if (known !== undefined) return known
    const made: string = crypto.randomUUID()
    await marks.put('store-id', made)
    return made
  })
}
