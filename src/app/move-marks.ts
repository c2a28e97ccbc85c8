import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'

/** Why a store takes no changes: the text of its mark `read-only`. */
export interface Freeze {
  /** The move's own name. */
  readonly move: string
  /** The name of the store that it goes to, and where that is, in words for people. */
  readonly to: string
  readonly place: string
  readonly keepsBlobStore: boolean
  /** All is there; what is here is of yesterday as soon as somebody serves it from there. */
  readonly isMoved: boolean
}

export async function readFreeze(metadata: Pick<MetadataStore, 'marks'>): Promise<Freeze | undefined> {
  const text = await metadata.marks.find('read-only')
  return text === undefined ? undefined : parseFreeze(text)
}

export function isFrozenFor(mark: string | undefined, move: string): boolean {
  return mark !== undefined && parseFreeze(mark).move === move
}

function parseFreeze(text: string): Freeze {
  const { move, to, place, keepsBlobStore, isMoved }: Partial<Record<keyof Freeze, unknown>> = JSON.parse(text)
  return {
    move: String(move),
    to: String(to),
    place: String(place),
    keepsBlobStore: keepsBlobStore === true,
    isMoved: isMoved === true,
  }
}

/**
 * From when this resolves nothing changes any more that anybody could see, and no transaction that could change it is
 * running. A move that goes on keeps its name.
 */
export function freeze(
  metadata: Pick<MetadataStore, 'transaction'>,
  { targetId, place, keepsBlobStore }: Pick<Freeze, 'place' | 'keepsBlobStore'> & { readonly targetId: string },
  clock: Pick<Clock, 'freshId'>,
): Promise<Freeze> {
  return metadata.transaction(async ({ marks }) => {
    await marks.holdUpOthers()
    const known = await marks.find('read-only')
    if (known !== undefined) return parseFreeze(known)
    const frozen = { move: clock.freshId(), to: targetId, place, keepsBlobStore, isMoved: false }
    await marks.put('read-only', JSON.stringify(frozen))
    return frozen
  })
}

/** Once the target has all: from here on the old place is of yesterday. Refused where somebody has aborted the move meanwhile. */
export async function markMoved(metadata: Pick<MetadataStore, 'transaction'>, move: string): Promise<void> {
  await metadata.transaction(async ({ marks }) => {
    await marks.holdUpOthers()
    const known = await marks.find('read-only')
    const freeze = known === undefined ? undefined : parseFreeze(known)
    if (freeze?.move !== move) throw new Error('the move was aborted meanwhile: empty the target, or go on here')
    await marks.put('read-only', JSON.stringify({ ...freeze, isMoved: true }))
  })
}

/** A name that no other store has, made when it is first asked for. */
export async function nameStore(metadata: Pick<MetadataStore, 'marks' | 'transaction'>): Promise<string> {
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
