import type { Log, LogFields, TextLayouts } from '../lib/log.ts'
import { BytesLost, type LostBytes, RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { Answer } from './answer.ts'
import type { Interruption, RequestContext } from './request-context.ts'

/** One line for each request, written when its answer is ready to be sent. */
export function logRequest(log: Log, answer: Answer, context: RequestContext): void {
  log.write('info', 'request', {
    id: context.id,
    method: context.request.method,
    path: context.target.path,
    route: context.matched?.route.operationId,
    status: answer.status,
    bytes: answer.lengthBytes,
    received: context.body?.receivedBytes,
    interrupted: context.interruption?.interrupted,
    kept: context.interruption?.kept,
    ms: Math.round((performance.now() - context.startedAt) * 100) / 100,
    who: context.principal?.fingerprint,
  })
}

/** Refusals are not logged: the line of the request shows their status. */
export function logError(log: Log, error: unknown, context: RequestContext): void {
  if (error instanceof BytesLost) logLoss(log, error.lost, context)
  if (error instanceof RegistryRefusal) return
  const level = error instanceof Unavailable ? 'warn' : 'error'
  log.write(level, 'request failed', { id: context.id, error })
}

/** One line for each blob or upload whose stored bytes are found lost. */
export function logLoss(log: Log, lost: LostBytes, { id, principal }: Pick<RequestContext, 'id' | 'principal'>): void {
  const message =
    'upload' in lost
      ? 'the stored bytes of an unfinished upload are missing or damaged; the upload is removed, and the client must begin again'
      : 'the stored bytes of a blob are missing or damaged; the next push of the blob replaces them'
  log.write('error', message, { id, account: principal?.account, ...lost })
}

export function findInterruption(error: unknown): Interruption | undefined {
  if (!(error instanceof RegistryRefusal)) return undefined
  const { refusal, message, details } = error
  const { reason, kept } = details[0] ?? {}
  const isBodyCut = refusal === 'body-incomplete' || refusal === 'body-too-slow'
  // If the refusal has a reason, the upload existed when the request began.
  if (!isBodyCut && (refusal !== 'upload-unknown' || reason === undefined)) return undefined
  return { interrupted: reason ?? message, kept }
}

/** How the line of one request is written in the text format. The JSON format writes the fields as they are. */
export const requestLogLayouts: TextLayouts = { request: writeRequestLine }

function writeRequestLine({ method, path, status, ms, bytes, received, who, interrupted, kept }: LogFields): string {
  const sizeBytes = bytes ?? received
  const size = sizeBytes === undefined ? '' : `  ${sizeBytes} B`
  return `${status} ${method} ${path}  ${ms} ms${size}  ${who ?? '-'}${writeInterruption(interrupted, kept)}`
}

function writeInterruption(reason: unknown, keptBytes: unknown): string {
  if (reason === undefined) return ''
  return keptBytes === undefined ? `  (${reason})` : `  (${reason}; ${keptBytes} B are kept)`
}
