import type { LogFields, TextLayouts } from '../lib/log.ts'

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
