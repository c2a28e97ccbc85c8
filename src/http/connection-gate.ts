import type { Log } from '../lib/log.ts'
import { countOpenFiles, openFilesMax } from '../lib/open-files.ts'

export interface GateSettings {
  /** The most descriptors that connections and requests may have open; 0 leaves it to the limit of the process. */
  readonly connectionsMax: number
}

/** The port: closing it refuses new connections and ends the idle ones. Requests that run go on. */
export interface Port {
  close(): void
  open(): void
}

const looksEveryMs = 100
const reserveMin = 64
const logsEveryMs = 60_000

/**
 * Closes the port while too many connections are open. Bun accepts connections without end. At the descriptor limit of the
 * process, accepting fails and is tried again at once, so the server spins, and neither files nor stores can be opened. Bun
 * tells nothing of a connection before its first request, so what is counted are open descriptors.
 */
export class ConnectionGate {
  readonly #port: Port
  readonly #log: Log
  readonly #openMax: number
  readonly #timer: Timer | undefined
  #isClosed = false
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor({ connectionsMax }: GateSettings, port: Port, log: Log) {
    this.#port = port
    this.#log = log
    const own = countOpenFiles()
    const max = openFilesMax()
    if (own === undefined || max === undefined) {
      this.#openMax = Number.POSITIVE_INFINITY
      return
    }
    const possible = max - Math.max(reserveMin, Math.ceil(max / 10))
    this.#openMax = connectionsMax === 0 ? possible : Math.min(possible, own + connectionsMax)
    this.#timer = setInterval(() => this.#look(), looksEveryMs)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const open = countOpenFiles() ?? 0
    if (!this.#isClosed && open > this.#openMax) {
      this.#isClosed = true
      this.#port.close()
      this.#warn('too many connections: new ones are refused until some have ended; see server.connections_max', {
        open,
      })
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

  /** Once a minute at most: what goes on for long must not fill the log. */
  #warn(words: string, details: Readonly<Record<string, unknown>>): void {
    const now = performance.now()
    if (now - this.#loggedAt < logsEveryMs) return
    this.#loggedAt = now
    this.#log.write('warn', words, { ...details, max: this.#openMax })
  }
}
