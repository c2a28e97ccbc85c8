import type { Server } from 'bun'
import type { Log } from '../lib/log.ts'
import { listSendQueues, remoteKeyOf } from '../lib/tcp-connections.ts'

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
 * Cuts readers that stopped. The kernel sends a blob by itself, so this process does not see its progress. But Linux tells
 * how many bytes wait in each connection. While an answer flows, this number changes from look to look. When the reader has
 * stopped, or its machine is gone, the number stays the same and is not zero. On a system that does not tell, no reader is
 * cut: one connection too many does less harm than a broken pull.
 */
export class StalledReaders {
  readonly #server: Server<undefined>
  readonly #log: Log
  /** By the other end of the connection: address and port. */
  readonly #watched = new Map<string, Watched>()
  readonly #tickMs: number
  readonly #port: number
  readonly #canTell = listSendQueues(0) !== undefined
  #timer: Timer | undefined

  constructor(server: Server<undefined>, windowMs: number, log: Log) {
    this.#server = server
    // A server whose port is closed does not tell it any more.
    this.#port = server.port ?? 0
    this.#log = log
    this.#tickMs = Math.max(100, windowMs / ticksPerWindow)
  }

  /** A long answer to this request is about to begin. */
  watch(request: Request): void {
    const peer = this.#server.requestIP(request)
    const isWatched = this.#canTell && peer !== null
    setTimeout(() => this.#server.timeout(request, isWatched ? timerSecondsMax : noTimer), begunAfterMs).unref()
    if (!isWatched) return
    this.#watched.set(remoteKeyOf(peer.address, peer.port), { request, queuedBytes: 0, stalledTicks: 0, quietTicks: 0 })
    this.#timer ??= setInterval(() => this.#look(), this.#tickMs)
  }

  /** Ends the connection of this request in the middle of its answer. */
  cut(request: Request): void {
    for (const [key, watched] of this.#watched) if (watched.request === request) this.#watched.delete(key)
    this.#server.timeout(request, 1)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#watched.clear()
  }

  #look(): void {
    const queues = listSendQueues(this.#port)
    for (const [key, watched] of this.#watched) this.#judge(key, watched, queues?.get(key))
    if (this.#watched.size === 0) this.close()
  }

  #judge(key: string, watched: Watched, queuedBytes: number | undefined): void {
    const isStill = queuedBytes === watched.queuedBytes
    watched.quietTicks = queuedBytes === 0 ? watched.quietTicks + 1 : 0
    watched.stalledTicks = isStill && queuedBytes !== 0 ? watched.stalledTicks + 1 : 0
    watched.queuedBytes = queuedBytes ?? 0
    if (queuedBytes === undefined || watched.quietTicks > quietTicksMax) {
      this.#watched.delete(key)
    } else if (watched.stalledTicks >= ticksPerWindow) {
      this.#watched.delete(key)
      this.#server.timeout(watched.request, 1)
      this.#log.write('info', 'a reader that stopped is cut')
    } else {
      this.#server.timeout(watched.request, timerSecondsMax)
    }
  }
}
