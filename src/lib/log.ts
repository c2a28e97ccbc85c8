import { LogOutput } from './log-output.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, unknown>>

/** The log of the process. No caller passes a header, a query or a credential, so nothing has to be redacted. */
export interface Log {
  write(level: LogLevel, message: string, fields?: LogFields): void
  /** Starts to write the buffered lines. */
  flush(): void
  /** Writes the buffered lines. Waits a bounded time for the reader of standard output. */
  close(): Promise<void>
}

/** For the text format: message -> how to write the fields of a line with this message. */
export type TextLayouts = Readonly<Record<string, (fields: LogFields) => string>>

export interface LogOptions {
  readonly format: 'json' | 'text'
  readonly level: LogLevel | 'silent'
  /** How much text may wait for the reader. When more waits, lines are dropped and counted. */
  readonly bufferBytes?: number
  /** Other processes write to the same output. Their lines and ours are not mixed. */
  readonly isShared?: boolean
  readonly textLayouts?: TextLayouts
}

const defaultBufferBytes = 1024 * 1024

const severities: Readonly<Record<LogLevel | 'silent', number>> = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 }

/**
 * Opens the log: JSON lines, or text lines for a terminal. This is own code because a line cost three times as much
 * with the usual library (`docs/decisions/0008-log-lines.md`).
 */
export function openLog(options: LogOptions): Log {
  const { format, level, bufferBytes = defaultBufferBytes, isShared = false, textLayouts = {} } = options
  const toLine = format === 'json' ? toJson : toText.bind(undefined, textLayouts)
  const out = new LogOutput(bufferBytes, isShared, (lines) => toLine('warn', 'log lines were lost', { lines }))
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

/** Lines of the same millisecond share one formatted time. */
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
  const shown = JSON.stringify(error instanceof Error ? { ...fields, error: describeError(error) } : fields)
  const start = `{"time":"${timestamp()}","level":"${level}","msg":${JSON.stringify(message)}`
  return shown === '{}' ? `${start}}\n` : `${start},${shown.slice(1)}\n`
}

/** An error with its causes. The causes of an adapter's error say what really happened. */
function describeError(error: Error): unknown {
  const { name, message, stack, cause } = error
  return { name, message, stack, cause: cause instanceof Error ? describeError(cause) : cause }
}

function toText(layouts: TextLayouts, level: LogLevel, message: string, fields: LogFields): string {
  const clock = timestamp().slice(11, 19)
  const layout = layouts[message]
  if (layout !== undefined) return `${clock} ${layout(fields)}\n`
  const mark = level === 'error' ? 'ERROR ' : level === 'warn' ? 'WARN ' : ''
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${showField(value)}`)
  return `${clock} ${mark}${message}${rest.join('')}\n`
}

function showField(value: unknown): string {
  if (value instanceof Error) {
    return value.cause instanceof Error ? `${value.stack}\n  caused by ${value.cause.stack}` : String(value.stack)
  }
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
