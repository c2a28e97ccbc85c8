import type { Log } from '../lib/log.ts'
import { countOpenFiles, openFilesMax } from '../lib/open-files.ts'

export interface GateSettings {
  /** The largest number of open descriptors above those at start; 0 leaves it to the limit of the process. */
  readonly connectionsMax: number
}

/** Closing the port refuses new connections and closes the idle ones. Running requests continue. */
export interface Port {
  close(): void
  open(): void
}

/** How the descriptors of this process are counted. */
export interface Descriptors {
  /** Undefined if the system does not report it. Infinity if no descriptor is left to count the others with. */
  count(): number | undefined
  max(): number | undefined
}

const ofThisProcess: Descriptors = { count: () => countOpenFiles(), max: openFilesMax }

const pauseMinMs = 100
const pauseMaxMs = 5_000
/** The pause is this many times as long as the count took, so that counting costs at most about 2 % of the time. */
const pausePerCount = 50
const reserveMin = 64
const logsEveryMs = 60_000

/** How long to wait before the descriptors are counted again. On Linux before 6.2, counting many of them is slow. */
export function pauseAfterCount(countedForMs: number): number {
  return Math.min(pauseMaxMs, Math.max(pauseMinMs, countedForMs * pausePerCount))
}

/**
 * Closes the port while too many descriptors are open. Bun accepts connections without end. At the descriptor limit of
 * the process, accepting fails and is tried again at once, so the server spins, and neither files nor stores can be
 * opened. Bun does not report a connection before its first request, so the gate counts descriptors.
 */
export class ConnectionGate {
  readonly #port: Port
  readonly #log: Log
  readonly #descriptors: Descriptors
  readonly #openMax: number
  #timer: Timer | undefined
  #isClosed = false
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor({ connectionsMax }: GateSettings, port: Port, log: Log, descriptors: Descriptors = ofThisProcess) {
    this.#port = port
    this.#log = log
    this.#descriptors = descriptors
    const own = descriptors.count()
    const max = descriptors.max()
    if (own === undefined || max === undefined) {
      this.#openMax = Number.POSITIVE_INFINITY
      return
    }
    const possible = max - Math.max(reserveMin, Math.ceil(max / 10))
    this.#openMax = connectionsMax === 0 ? possible : Math.min(possible, own + connectionsMax)
    this.#checkAfter(pauseMinMs)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #checkAfter(pauseMs: number): void {
    this.#timer = setTimeout(() => {
      const startedAt = performance.now()
      const open = this.#descriptors.count()
      this.#checkAfter(pauseAfterCount(performance.now() - startedAt))
      // A count that failed says nothing about the port.
      if (open !== undefined) this.#decide(open)
    }, pauseMs)
    this.#timer.unref()
  }

  #decide(open: number): void {
    if (!this.#isClosed && open > this.#openMax) {
      this.#isClosed = true
      this.#port.close()
      this.#warn(
        'too many open descriptors: new connections are refused; raise `ulimit -n` or see server.connections_max',
        { open: Number.isFinite(open) ? open : 'all' },
      )
    } else if (this.#isClosed && open <= this.#openMax * 0.95) {
      this.#reopen()
    }
  }

  #reopen(): void {
    try {
      this.#port.open()
      this.#isClosed = false
    } catch (error) {
      this.#warn('the port could not be opened again; this is tried until it succeeds', { error })
    }
  }

  /** Logs at most once a minute, so that a long overload does not fill the log. */
  #warn(message: string, details: Readonly<Record<string, unknown>>): void {
    const now = performance.now()
    if (now - this.#loggedAt < logsEveryMs) return
    this.#loggedAt = now
    this.#log.write('warn', message, { ...details, max: this.#openMax })
  }
}
