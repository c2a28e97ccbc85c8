import type { Server } from 'bun'
import type { Log } from '../lib/log.ts'
import { listSendQueues } from '../lib/tcp-connections.ts'

interface Watched {
  readonly request: Request
  /** Bytes that waited to be sent at the last tick. */
  queuedBytes: number
  /** Ticks in a row in which the reader took nothing. */
  stalledTicks: number
  /** Ticks in a row in which nothing was waiting to be sent: the answer is out, most likely. */
  quietTicks: number
}

/** The longest that Bun's own timer can be set to. It is wound up again and again while the answer flows. */
const timerSecondsMax = 255
const noTimer = 0

/** Bun takes a new time for an answer only once the answer has begun. */
const begunAfterMs = 1_000

const ticksPerWindow = 6
const quietTicksMax = 12

/**
 * Cuts readers that stopped. The kernel sends a blob by itself, so this process sees nothing of its progress; but the
 * kernel tells how many bytes wait in a connection. While an answer flows, that number is another one at every look; when
 * the reader has stopped (or its machine is gone) the queue is full, and to the byte the same. Where the system does not
 * tell (Linux does), nobody is cut: better a connection too many than a broken pull.
 */
export class StalledReaders {
  readonly #server: Server<undefined>
  readonly #log: Log
  readonly #watched = new Map<string, Watched>()
  readonly #tickMs: number
  readonly #canTell = listSendQueues(0) !== undefined
  #timer: Timer | undefined

  constructor(server: Server<undefined>, windowMs: number, log: Log) {
    this.#server = server
    this.#log = log
    this.#tickMs = Math.max(100, windowMs / ticksPerWindow)
  }

  /** A long answer to this request is about to begin. */
  watch(request: Request): void {
    const port = this.#server.requestIP(request)?.port
    const isWatched = this.#canTell && port !== undefined
    setTimeout(() => this.#server.timeout(request, isWatched ? timerSecondsMax : noTimer), begunAfterMs).unref()
    if (!isWatched) return
    this.#watched.set(String(port), { request, queuedBytes: 0, stalledTicks: 0, quietTicks: 0 })
    this.#timer ??= setInterval(() => this.#look(), this.#tickMs)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#watched.clear()
  }

  #look(): void {
    const queues = listSendQueues(this.#server.port ?? 0)
    for (const [port, watched] of this.#watched) this.#judge(port, watched, queues?.get(Number(port)))
    if (this.#watched.size === 0) this.close()
  }

  #judge(port: string, watched: Watched, queuedBytes: number | undefined): void {
    const isStill = queuedBytes === watched.queuedBytes
    watched.quietTicks = queuedBytes === 0 ? watched.quietTicks + 1 : 0
    watched.stalledTicks = isStill && queuedBytes !== 0 ? watched.stalledTicks + 1 : 0
    watched.queuedBytes = queuedBytes ?? 0
    if (queuedBytes === undefined || watched.quietTicks > quietTicksMax) {
      this.#watched.delete(port)
    } else if (watched.stalledTicks >= ticksPerWindow) {
      this.#watched.delete(port)
      this.#server.timeout(watched.request, 1)
      this.#log.write('info', 'a reader that stopped is cut')
    } else {
      this.#server.timeout(watched.request, timerSecondsMax)
    }
  }
}
