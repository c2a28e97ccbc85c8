import { LogOutput } from './log-output.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, unknown>>

/** Where the process talks. Nobody passes it a header, a query or a credential: there is nothing to redact. */
export interface Log {
  write(level: LogLevel, message: string, fields?: LogFields): void
  /** Begins to write what is gathered. */
  flush(): void
  /** Writes what is gathered, and waits a bounded time for the reader to take it. */
  close(): Promise<void>
}

export interface LogOptions {
  readonly format: 'json' | 'text'
  readonly level: LogLevel | 'silent'
  /** How much text may wait for a reader. Above this, lines are dropped and counted. */
  readonly bufferBytes?: number
}

const usualBufferBytes = 1024 * 1024

const severities: Readonly<Record<LogLevel | 'silent', number>> = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 }

/**
 * JSON lines for machines, readable lines for a terminal. Written by hand: with the usual library a line cost three
 * times as much, and the line of a manifest pull is a good part of its whole price (`docs/decisions`, "Log lines").
 */
export function openLog({ format, level, bufferBytes = usualBufferBytes }: LogOptions): Log {
  const toLine = format === 'json' ? toJson : toText
  const out = new LogOutput(bufferBytes, (lines) => toLine('warn', 'log lines were lost', { lines }))
  const least = severities[level]
  return {
    write(severity, message, fields = {}) {
      if (severities[severity] < least) return
      out.write(toLine(severity, message, fields))
      if (severity === 'warn' || severity === 'error') out.flush()
    },
    flush: () => out.flush(),
    close: () => out.close(),
  }
}

/** The clock's text changes once a millisecond at most; many lines share it. */
let stampedAt = 0
let stamp = ''

function timestamp(): string {
  const now = Date.now()
  if (now !== stampedAt) {
    stampedAt = now
    stamp = new Date(now).toISOString()
  }
  return stamp
}

function toJson(level: LogLevel, message: string, fields: LogFields): string {
  const { error } = fields
  const shown = error instanceof Error ? { ...fields, error: describeError(error) } : fields
  return `${JSON.stringify({ time: timestamp(), level, msg: message, ...shown })}\n`
}

/** An error with its causes, which is what an adapter's error is about. */
function describeError(error: Error): unknown {
  const { name, message, stack, cause } = error
  return { name, message, stack, cause: cause instanceof Error ? describeError(cause) : cause }
}

function toText(level: LogLevel, message: string, fields: LogFields): string {
  const clock = timestamp().slice(11, 19)
  if (message === 'request') {
    const { method, path, status, ms, bytes, received, who, interrupted, kept } = fields
    const size = bytes ?? received
    return `${clock} ${status} ${method} ${path}  ${ms} ms${size === undefined ? '' : `  ${size} B`}  ${who ?? '-'}${showInterruption(interrupted, kept)}\n`
  }
  const mark = level === 'error' ? 'ERROR ' : level === 'warn' ? 'WARN ' : ''
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${showField(value)}`)
  return `${clock} ${mark}${message}${rest.join('')}\n`
}

function showInterruption(reason: unknown, keptBytes: unknown): string {
  if (reason === undefined) return ''
  return keptBytes === undefined ? `  (${reason})` : `  (${reason}; ${keptBytes} B are kept)`
}

function showField(value: unknown): string {
  if (value instanceof Error) {
    return value.cause instanceof Error ? `${value.stack}\n  caused by ${value.cause.stack}` : String(value.stack)
  }
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
