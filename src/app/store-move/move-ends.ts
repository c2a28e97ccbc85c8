import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { SchemaMismatch } from '../../adapters/metadata-sql/migrate.ts'
import { rootCauseOf } from '../../lib/root-cause.ts'
import type { Config } from '../settings.ts'
import { openMovableStores, type Stores } from '../stores.ts'

/** The stores at one end of a move. Their places are texts for people, without secrets; equal texts mean the same place. */
export interface MoveEnd extends Stores, AsyncDisposable {
  readonly metadataPlace: string
  readonly blobsPlace: string
}

/** A count of all rows can take longer than the statements of a server may. */
const statementMs = 3_600_000

/**
 * Opens the source. Its schema must be the newest and is not changed: an older schema means that servers of an older
 * version, which may not know what closes the source for changes, still work on it.
 */
export async function openSource(config: Config): Promise<MoveEnd> {
  try {
    return await openEnd({ ...config, migrate: 'manual' }, true)
  } catch (error) {
    const isSchema = error instanceof SchemaMismatch
    const rule = 'before a registry is moved, all its servers must have this version of Berth'
    throw explained(isSchema ? rule : 'the source cannot be opened', error)
  }
}

export async function openTarget(config: Config): Promise<MoveEnd> {
  try {
    return await openEnd(config, false)
  } catch (error) {
    throw explained('the target (--to) cannot be opened', error)
  }
}

async function openEnd(config: Config, mustBeThere: boolean): Promise<MoveEnd> {
  const stores = await openMovableStores({ ...config, databaseStatementMs: statementMs }, { mustBeThere })
  return {
    ...stores,
    metadataPlace: describeMetadata(config),
    blobsPlace: describeBlobs(config),
    async [Symbol.asyncDispose]() {
      await stores.metadata.close()
      await stores.blobs.close()
    },
  }
}

/** Requires that both blob stores can be used, before anything is changed. */
export async function probeBlobs(source: MoveEnd, target: MoveEnd): Promise<void> {
  const both = [
    ['source', source],
    ['target (--to)', target],
  ] as const
  for (const [end, { blobs, blobsPlace }] of both) {
    try {
      await blobs.probe()
    } catch (error) {
      throw explained(`the blob store of the ${end}, ${blobsPlace}, cannot be used`, error)
    }
  }
}

/** Adds the innermost cause to the message, because that is what an operator can repair. */
function explained(what: string, error: unknown): Error {
  if (!(error instanceof Error)) return new Error(what, { cause: error })
  return new Error(`${what}: ${error.message}`, { cause: rootCauseOf(error) })
}

export function describeMetadata({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl === undefined) return join(realPath(dataDir), 'metadata.sqlite')
  const { host, pathname } = new URL(databaseUrl)
  return `postgres://${host}${pathname}`
}

export function describeBlobs({ bucket, s3Endpoint, s3Region, s3Prefix, dataDir }: Config): string {
  if (bucket === undefined) return join(realPath(dataDir), 'blobs')
  return `${s3Endpoint ?? `https://s3.${s3Region}.amazonaws.com`}/${bucket}/${s3Prefix}`
}

function realPath(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    // The folder does not exist yet, so it has no other name.
    return folder
  }
}
