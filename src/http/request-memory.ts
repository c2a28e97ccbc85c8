import { type ByteBudget, type ByteHold, type HoldTerms, NoRoom } from '../lib/byte-budget.ts'
import type { ByteSource } from '../lib/byte-source.ts'
import { RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { Principal } from '../ports/identity.ts'
import type { Answer } from './answer.ts'
import type { Route } from './route.ts'

/** A shorter answer fits into the buffers of its connection, so it uses no memory of this process while it is sent. */
export const smallAnswerBytes = 32 * 1024

/** Bun reads about this much of a body from the kernel before the handler reads any (measured: 1.4 to 1.5 MiB). */
export const unreadBodyBytesMax = 1536 * 1024

/** The connection of a request. */
export interface Connection {
  /** Whether the answer is still being sent. */
  isOpen(request: Request): boolean
  /** While a request waits for memory, its connection must not be closed as idle. */
  stopTimer(request: Request): void
  startTimer(request: Request): void
  cut(request: Request): void
}

/** For requests without a connection: their answer counts as sent at once. */
export const noConnection: Connection = {
  isOpen: () => false,
  stopTimer: () => undefined,
  startTimer: () => undefined,
  cut: () => undefined,
}

/** The caller and the route that the memory is counted for. */
export interface MemoryUser {
  readonly principal: Principal | undefined
  readonly route: Route | undefined
  /** Called only for callers without credentials, because it has to look at the connection. */
  readonly network: () => string | undefined
}

/** The memory that one request uses: first for its body, then for its answer. */
export class RequestMemory {
  readonly #budget: ByteBudget
  readonly #connection: Connection
  readonly #request: Request
  readonly #userNow: () => MemoryUser
  #hold: ByteHold | undefined

  constructor(budget: ByteBudget, connection: Connection, request: Request, userNow: () => MemoryUser) {
    this.#budget = budget
    this.#connection = connection
    this.#request = request
    this.#userNow = userNow
  }

  /** Call this before that many bytes of the body are read, or of the answer are collected. */
  async reserve(bytes: number, body?: ByteSource): Promise<void> {
    // Only the sender of an unfinished body is cut. A body that has arrived completely cannot be too slow.
    const askToRelease = (): void => body?.cancel(new RegistryRefusal('body-too-slow'))
    const isOver = () => !this.#connection.isOpen(this.#request)
    const waiting = body === undefined ? {} : { bytesWhileWaiting: Math.min(bytes, unreadBodyBytesMax) }
    await this.#take(bytes, { askToRelease, isOver, ...waiting })
  }

  /** Whether the answer may stay in memory while it is sent. If not: drop it, `wait`, and create it again. */
  keep(bytes: number): boolean {
    const terms = this.#termsOfAnswer()
    const user = this.#userNow()
    // A request that has changed something cannot be handled a second time.
    const mayWait = this.#request.method === 'GET' && !isOperators(user)
    if (this.#hold !== undefined) this.#hold.become(bytes, terms)
    else if (mayWait) this.#hold = this.#budget.tryReserve(holderOf(user), bytes, terms)
    else this.#hold = this.#budget.force(holderOf(user), bytes, terms)
    return this.#hold !== undefined
  }

  async wait(bytes: number): Promise<void> {
    await this.#take(bytes, this.#termsOfAnswer())
  }

  release(): void {
    this.#hold?.release()
    this.#hold = undefined
  }

  #termsOfAnswer(): HoldTerms {
    const request = this.#request
    const connection = this.#connection
    return { isOver: () => !connection.isOpen(request), askToRelease: () => connection.cut(request) }
  }

  async #take(bytes: number, terms: HoldTerms): Promise<void> {
    this.release()
    const user = this.#userNow()
    const holder = holderOf(user)
    // Operators must be able to act when memory is scarce. Their bodies are small.
    this.#hold = isOperators(user)
      ? this.#budget.force(holder, bytes, terms)
      : this.#budget.tryReserve(holder, bytes, terms)
    if (this.#hold !== undefined) return
    this.#connection.stopTimer(this.#request)
    try {
      this.#hold = await this.#budget.waitForRoom(holder, bytes, terms)
    } catch (error) {
      if (!(error instanceof NoRoom)) throw error
      throw new Unavailable('request-memory', { cause: error })
    } finally {
      if (this.#request.method === 'GET') this.#connection.startTimer(this.#request)
    }
  }
}

function isOperators({ route }: MemoryUser): boolean {
  return route?.access === 'known caller' && route.right === 'operate'
}

/** Each caller has one share. Anonymous callers of one network have one share together. */
function holderOf({ principal, network }: MemoryUser): string {
  if (principal === undefined || principal.kind === 'anonymous') return `network ${network() ?? ''}`
  return `${principal.account} ${principal.subject}`
}

/** The memory that an answer uses until its reader has received it. The kernel sends files, which use none. */
export function bytesInMemory({ body, memoryBytes }: Answer): number {
  if (memoryBytes !== undefined) return memoryBytes
  return typeof body === 'string' || body instanceof Uint8Array ? Buffer.byteLength(body) : 0
}

/** A shorter answer fits into the buffers of the connection, so this process does not wait for the reader. */
const longAnswerBytes = 256 * 1024

/** Whether sending the answer takes as long as its reader needs. The length of a stream is unknown before its end. */
export function isLong(answer: Answer): boolean {
  return answer.memoryBytes !== undefined || (answer.lengthBytes ?? bytesInMemory(answer)) > longAnswerBytes
}
