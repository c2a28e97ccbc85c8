import pino from 'pino'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, unknown>>

/** Where the process talks. Nobody passes it a header, a query or a credential: there is nothing to redact. */
export interface Log {
  write(level: LogLevel, message: string, fields?: LogFields): void
  /** Writes out what is still buffered. */
  flush(): void
}

export interface LogOptions {
  readonly format: 'json' | 'text'
  readonly level: LogLevel | 'silent'
}

/** JSON lines for machines, gathered for a moment before they are written; readable lines for a terminal. */
export function openLog({ format, level }: LogOptions): Log {
  const destination = format === 'json' ? pino.destination({ dest: 1, sync: true, minLength: 4_096 }) : textStream
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers }, destination)
  const flush = (): void => {
    if (format === 'json') (destination as ReturnType<typeof pino.destination>).flushSync()
  }
  if (format === 'json') setInterval(flush, 100).unref()
  return {
    write(severity, message, fields = {}) {
      logger[severity](fields, message)
      if (severity !== 'info' && severity !== 'debug') flush()
    },
    flush,
  }
}

/** An error with its causes, which is what an adapter's error is about. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    cause: error.cause === undefined ? undefined : describeError(error.cause),
  }
}

const serializers = { error: describeError }

const textStream = {
  write(line: string): void {
    process.stdout.write(toText(JSON.parse(line)))
  },
}

interface Line {
  readonly time: string
  readonly level: number
  readonly msg: string
  readonly [field: string]: unknown
}

function toText({ time, level, msg, ...fields }: Line): string {
  const clock = time.slice(11, 19)
  if (msg === 'request') {
    const { method, path, status, ms, bytes, who } = fields
    return `${clock} ${status} ${method} ${path}  ${ms} ms${bytes === undefined ? '' : `  ${bytes} B`}  ${who ?? '-'}\n`
  }
  const mark = level >= 50 ? 'ERROR ' : level >= 40 ? 'WARN ' : ''
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${format(value)}`)
  return `${clock} ${mark}${msg}${rest.join('')}\n`
}

function format(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  return 'stack' in value ? String(value.stack) : JSON.stringify(value)
}
