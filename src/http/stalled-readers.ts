import type { Server } from 'bun'
import type { Log } from '../lib/log.ts'
import { listSendQueues, remoteKeyOf } from '../lib/tcp-connections.ts'

interface Watched {
  readonly request: Request
  /** Bytes in the send queue at the last tick. */
  queuedBytes: number
  /** Consecutive ticks in which the reader received nothing. */
  stalledTicks: number
  /** Consecutive ticks with an empty send queue: the answer has probably been sent completely. */
  quietTicks: number
}

/** The largest value of Bun's own timer. It is reset again and again while the answer is being sent. */
const timerSecondsMax = 255
const noTimer = 0

/**
 * Bun accepts a new timeout only after the answer has begun. Most answers have ended before this time. They cost no more than
 * a place in a list.
 */
const begunAfterMs = 1_000

const ticksPerWindow = 6
const quietTicksMax = 12

/**
 * Cuts readers that have stopped. The kernel sends a blob without this process, which therefore does not see the
 * progress. But Linux shows how many bytes are in the send queue of each connection. While an answer is being sent,
 * this number changes from tick to tick. If the reader has stopped, or its machine has disappeared, the number stays
 * the same and is not zero. On a system without these numbers no reader is cut: an idle connection does less harm than
 * an interrupted pull.
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
  /** Requests of the last second and of the second before it. */
  #recent: Request[] = []
  #begun: Request[] = []
  #recentTimer: Timer | undefined

  constructor(server: Server<undefined>, windowMs: number, log: Log) {
    this.#server = server
    // Bun does not report the port after it has been closed.
    this.#port = server.port ?? 0
    this.#log = log
    this.#tickMs = Math.max(100, windowMs / ticksPerWindow)
  }

  /** Call this before a long answer to this request begins. */
  watch(request: Request): void {
    this.#recent.push(request)
    this.#recentTimer ??= setInterval(() => this.#watchBegun(), begunAfterMs).unref()
  }

  #watchBegun(): void {
    for (const request of this.#begun) this.#watchOne(request)
    this.#begun = this.#recent
    this.#recent = []
    if (this.#begun.length > 0) return
    clearInterval(this.#recentTimer)
    this.#recentTimer = undefined
  }

  #watchOne(request: Request): void {
    const peer = this.#server.requestIP(request)
    // The answer has ended.
    if (peer === null) return
    this.#server.timeout(request, this.#canTell ? timerSecondsMax : noTimer)
    if (!this.#canTell) return
    this.#watched.set(remoteKeyOf(peer.address, peer.port), { request, queuedBytes: 0, stalledTicks: 0, quietTicks: 0 })
    this.#timer ??= setInterval(() => this.#checkAll(), this.#tickMs)
  }

  /** Closes the connection of this request in the middle of its answer. */
  cut(request: Request): void {
    for (const [key, watched] of this.#watched) if (watched.request === request) this.#watched.delete(key)
    this.#recent = this.#recent.filter((each) => each !== request)
    this.#begun = this.#begun.filter((each) => each !== request)
    this.#server.timeout(request, 1)
  }

  close(): void {
    clearInterval(this.#recentTimer)
    this.#recentTimer = undefined
    this.#recent = []
    this.#begun = []
    this.#stopChecking()
  }

  #stopChecking(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#watched.clear()
  }

  #checkAll(): void {
    const queues = listSendQueues(this.#port)
    for (const [key, watched] of this.#watched) this.#check(key, watched, queues?.get(key))
    if (this.#watched.size === 0) this.#stopChecking()
  }

  #check(key: string, watched: Watched, queuedBytes: number | undefined): void {
    const isStill = queuedBytes === watched.queuedBytes
    watched.quietTicks = queuedBytes === 0 ? watched.quietTicks + 1 : 0
    watched.stalledTicks = isStill && queuedBytes !== 0 ? watched.stalledTicks + 1 : 0
    watched.queuedBytes = queuedBytes ?? 0
    if (queuedBytes === undefined || watched.quietTicks > quietTicksMax) {
      this.#watched.delete(key)
    } else if (watched.stalledTicks >= ticksPerWindow) {
      this.#watched.delete(key)
      this.#server.timeout(watched.request, 1)
      this.#log.write('info', 'a client that stopped reading was disconnected')
    } else {
      this.#server.timeout(watched.request, timerSecondsMax)
    }
  }
}
