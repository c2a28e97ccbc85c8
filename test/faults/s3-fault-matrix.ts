// The expected outcome of each client action for each fault of S3, and the code that tries one combination (a cell).
import { ask, checkBlob } from '../support/clients/registry-client.ts'
import type { S3Operation } from '../support/s3/s3-operation.ts'
import type { S3Server } from '../support/s3/s3-server.ts'
import { auditPromises, listThere } from '../support/s3-faults/s3-audit.ts'
import type { S3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'
import { type FaultName, faultPlaces } from '../support/s3-faults/s3-faults.ts'
import type { S3World } from '../support/s3-faults/s3-world.ts'
import type { ClientAction, Outcome, PreparedAction } from './s3-client-actions.ts'

/** One registry behind a proxy of its own. */
export interface Lane {
  readonly world: S3World
  readonly proxy: S3FaultProxy
  readonly server: Pick<S3Server, 'name'>
}

export type Occurrence = 'once' | 'always'

export interface Cell {
  readonly action: ClientAction
  readonly operation: S3Operation
  readonly fault: FaultName
  readonly occurrence: Occurrence
}

export interface Tried {
  readonly cell: Cell
  /** What is not as the rule has it. */
  readonly faults: readonly string[]
}

const faultNames: readonly FaultName[] = [
  '500',
  '500 after effect',
  '503 SlowDown',
  'reset before',
  'reset mid-request-body',
  'reset mid-response-body',
  'end mid-response-body',
  'reset after effect',
  'timeout before effect',
  'timeout after effect',
  '200 with error',
  '200 with error after effect',
  'wrong ETag',
  'wrong size on HEAD',
  'slow',
]

const withBody: ReadonlySet<S3Operation> = new Set(['PutObject', 'UploadPart', 'CompleteMultipartUpload'])
const withAnswer: ReadonlySet<S3Operation> = new Set([
  'GetObject',
  'CreateMultipartUpload',
  'CompleteMultipartUpload',
  'ListObjects',
  'ListMultipartUploads',
])

/** Whether there is such a fault of such a request: what has no body does not break in the middle of it. */
function canBe(operation: S3Operation, fault: FaultName): boolean {
  if (fault === 'reset mid-request-body') return withBody.has(operation)
  if (fault.endsWith('mid-response-body')) return withAnswer.has(operation)
  return faultPlaces[fault]?.includes(operation) ?? true
}

export function cellsOf(actions: readonly ClientAction[]): readonly Cell[] {
  return actions.flatMap((action) =>
    // A request that sends nothing to S3 is not affected by a fault there.
    (action.operations.length > 0 ? action.operations : (['PutObject', 'GetObject', 'HeadObject'] as const)).flatMap(
      (operation) =>
        faultNames
          .filter((fault) => canBe(operation, fault))
          .flatMap((fault) =>
            (['once', 'always'] as const).map((occurrence) => ({ action, operation, fault, occurrence })),
          ),
    ),
  )
}

/** The request succeeds in spite of the fault. The bytes are right, so the client gets no error. */
function isHarmless({ action, operation, fault }: Cell): boolean {
  if (action.operations.length === 0 || fault === 'slow') return true
  // Signed bytes that were taken are there, whatever their ETag is said to be.
  if (fault === 'wrong ETag' && operation === 'PutObject') return true
  // After every doubt, the object itself is asked for.
  if (operation === 'CompleteMultipartUpload')
    return fault.endsWith('after effect') || fault.endsWith('mid-response-body')
  // Replaced tails are removed if that can be, and found later if not.
  return operation === 'DeleteObject' && action.name === 'chunks'
}

/** An answer that is complete, well formed and wrong. The request is not repeated because of it. */
function isLie({ fault }: Cell): boolean {
  return fault === 'wrong ETag' || fault === 'wrong size on HEAD'
}

/** Begun a second time, a multipart upload would be a second one. */
function isTriedOnce({ operation, fault }: Cell): boolean {
  return operation === 'CreateMultipartUpload' && fault !== '503 SlowDown'
}

export function expectedOf(cell: Cell): readonly Outcome[] {
  if (isHarmless(cell)) return ['done']
  const mustEnd = cell.occurrence === 'always' || isLie(cell) || isTriedOnce(cell)
  if (!mustEnd) return ['done']
  if (cell.action.name.startsWith('pull')) return ['unavailable', 'broken']
  // After a failed POST the client does not know the session, so the answer can only ask for a retry.
  return isLie(cell) && !isOneRequest(cell) ? ['over'] : ['unavailable']
}

function isOneRequest({ action }: Cell): boolean {
  return action.name.endsWith('POST')
}

/** A session of which S3 has said something wrong is over. */
function needsNewSession(cell: Cell, server: S3Server['name']): boolean {
  if (isOneRequest(cell)) return false
  // moto answers 500 to a part for a completed upload. This 500 cannot be distinguished from any other.
  return isLie(cell) || (server === 'moto' && cell.operation === 'HeadObject')
}

export async function tryCell({ world, proxy, server }: Lane, cell: Cell, seed: number): Promise<Tried> {
  const { action, operation, fault, occurrence } = cell
  const prepared = await action.prepare(world, seed)
  const drip = { bytes: 4_096, pauseMs: 5 }
  const rule = proxy.inject({ fault, operation, drip, ...(occurrence === 'once' && { occurrence: 1 }) })
  const outcome = await prepared.run()
  const wasHit = rule.hits() > 0
  proxy.clear()
  const faults: string[] = []
  if (!expectedOf(cell).includes(outcome)) faults.push(`ends as ${outcome}, not ${expectedOf(cell).join(' or ')}`)
  if (wasHit !== action.operations.length > 0) faults.push(wasHit ? 'S3 was asked' : 'the fault was never met')
  const again = outcome === 'done' ? 'done' : await prepared.retry()
  if (again !== 'done' && again !== 'new session') faults.push(`tried again, it ends as ${again}`)
  if (outcome !== 'done' && (again === 'new session') !== needsNewSession(cell, server.name))
    faults.push(`goes on ${again}`)
  faults.push(...(await auditPromises(world.dataDir, world.direct)))
  faults.push(...(await checkAfterwards(world, prepared)))
  return { cell, faults }
}

/** Checks that the bytes are there, and that nothing else is left after the garbage collection. */
async function checkAfterwards(world: S3World, { digest, repository }: PreparedAction): Promise<string[]> {
  const faults: string[] = []
  if (digest !== undefined) {
    const served = await checkBlob(world, repository, digest)
    if (served !== 'whole') faults.push(`is served afterwards: ${served}`)
  }
  await world.sweep()
  faults.push(...(await world.audit()))
  if (digest !== undefined) await ask(world, 'DELETE', `/v2/${repository}/blobs/${digest}`)
  await world.collect(0)
  const left = await listThere(world.direct)
  if (left.length > 0) faults.push(`leaves ${left.map((object) => object.storageKey).join()}`)
  return faults
}
