import type { Config } from '../settings.ts'
import { claimBlobStore } from '../stores.ts'
import { closeEnd, type MoveEnd, openSource } from './move-ends.ts'
import { type Freeze, markAborted, nameStore, thaw } from './move-state.ts'

/**
 * Lets the source take changes again. Gives what the move was, or undefined when it takes changes already. A move that is
 * still running somewhere goes no further from the moment at which it is marked, and the bytes are ours again before anybody
 * can change what names them.
 */
export async function abortMove(config: Config, isForced: boolean): Promise<Freeze | undefined> {
  const stores = await openSource(config)
  try {
    return await abortAt(stores, isForced)
  } finally {
    await closeEnd(stores)
  }
}

/** As `abortMove`, where the stores are open. */
export async function abortAt(source: MoveEnd, isForced: boolean): Promise<Freeze | undefined> {
  const frozen = await markAborted(source.metadata, (found) => {
    if (!isForced) requireHarmless(found)
  })
  if (frozen === undefined) return undefined
  if (frozen.keepsBlobStore) await claimBlobStore(source, await nameStore(source.metadata), frozen.to)
  await thaw(source.metadata, frozen.move)
  return frozen
}

/** Whether nobody can be working on a copy of what is here. */
function requireHarmless({ phase, place, keepsBlobStore }: Freeze): void {
  if (phase === 'bytes') return
  if (phase === 'rows') {
    throw new Error(
      `all rows may be in ${place} already: run the move again to end it; or stay here with --abort --force, and then that copy is of no use`,
    )
  }
  const sharing = keepsBlobStore ? '; both have the same blob store, and would remove bytes of each other' : ''
  throw new Error(`the registry was moved to ${place}${sharing}: --force, if nothing has served it from there`)
}
