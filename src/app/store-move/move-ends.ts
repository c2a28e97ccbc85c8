import { SchemaMismatch } from '../../adapters/metadata-sql/migrate.ts'
import { rootCauseOf } from '../../lib/root-cause.ts'
import type { Config } from '../settings.ts'
import { openMovableStores, type Stores } from '../stores.ts'
import { describeBlobs, describeMetadata } from './store-places.ts'

/** The stores at one end of a move, and where they are: in words for people, and equal where the places are. */
export interface MoveEnd extends Stores {
  readonly metadataPlace: string
  readonly blobsPlace: string
}

/** A count over all rows may take longer than a request may. */
const statementMs = 3_600_000

/**
 * Where the registry is. Its schema is left as it is: if that is an older one, no server of this version has worked on it
 * yet, and one of the version before may be running, which knows nothing of moves and would go on taking changes.
 */
export async function openSource(config: Config): Promise<MoveEnd> {
  try {
    return await openEnd({ ...config, migrate: 'manual' }, true)
  } catch (error) {
    const isSchema = error instanceof SchemaMismatch
    const rule = 'before a registry is moved, all its servers must be of this version, and older ones be stopped'
    throw explained(isSchema ? rule : 'the old place cannot be opened', error)
  }
}

export async function openTarget(config: Config): Promise<MoveEnd> {
  try {
    return await openEnd(config, false)
  } catch (error) {
    throw explained('the new place (--to) cannot be opened', error)
  }
}

/** Before anything is done: whether the bytes at both ends can be reached. */
export async function probeBlobs(source: MoveEnd, target: MoveEnd): Promise<void> {
  const both = [
    ['the old place', source],
    ['the new place (--to)', target],
  ] as const
  for (const [place, { blobs, blobsPlace }] of both) {
    try {
      await blobs.probe()
    } catch (error) {
      throw explained(`${blobsPlace}, ${place}, cannot be used`, error)
    }
  }
}

/** What it was is said as well, and what was at the bottom of it: that is what an operator can mend. */
function explained(what: string, error: unknown): Error {
  if (!(error instanceof Error)) return new Error(what, { cause: error })
  return new Error(`${what}: ${error.message}`, { cause: rootCauseOf(error) })
}

async function openEnd(config: Config, mustBeThere: boolean): Promise<MoveEnd> {
  const stores = await openMovableStores({ ...config, databaseStatementMs: statementMs }, { mustBeThere })
  return { ...stores, metadataPlace: describeMetadata(config), blobsPlace: describeBlobs(config) }
}

export async function closeEnd({ metadata, blobs }: MoveEnd): Promise<void> {
  await metadata.close()
  await blobs.close()
}
