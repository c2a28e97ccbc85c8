/** The calls that one process accepts: name -> argument and result. */
export type CallTable<T> = { readonly [K in keyof T]: (argument: never) => unknown }

type ArgumentOf<F> = F extends (argument: infer A) => unknown ? A : never
type ResultOf<F> = F extends (argument: never) => infer R ? Awaited<R> : never

interface Call {
  readonly call: string
  readonly argument: unknown
  /** Undefined if no answer is expected. */
  readonly id?: number
}

interface Reply {
  readonly reply: number
  readonly value?: unknown
  readonly error?: string
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** The other process is gone. */
export class Disconnected extends Error {
  override readonly name = 'Disconnected'
}

/**
 * Calls between two processes that exchange messages. `Own` are the calls that this process accepts, and `Theirs` those
 * of the other process. A message is handled synchronously, so messages take effect in the order in which they were sent.
 */
export class RemoteCalls<Own extends CallTable<Own>, Theirs extends CallTable<Theirs>> {
  readonly #own: Own
  readonly #send: (message: unknown) => void
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #isClosed = false

  constructor(own: Own, send: (message: unknown) => void) {
    this.#own = own
    this.#send = send
  }

  /** The result of the call. Rejects with `Disconnected` if the other process ends before. */
  call<K extends keyof Theirs & string>(name: K, argument: ArgumentOf<Theirs[K]>): Promise<ResultOf<Theirs[K]>> {
    if (this.#isClosed) return Promise.reject(new Disconnected(name))
    this.#lastId += 1
    const id = this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#waiting.set(id, { resolve, reject })
    this.#post({ call: name, argument, id })
    return promise as Promise<ResultOf<Theirs[K]>>
  }

  /** As `call`, without an answer. */
  tell<K extends keyof Theirs & string>(name: K, argument: ArgumentOf<Theirs[K]>): void {
    if (!this.#isClosed) this.#post({ call: name, argument })
  }

  /** Must be called with each message that arrives. */
  receive(message: unknown): void {
    const received = message as Call | Reply
    if ('reply' in received) this.#settle(received)
    else void this.#answer(received)
  }

  /** Must be called when the other process is gone. Rejects the calls that wait for an answer. */
  close(): void {
    this.#isClosed = true
    for (const [name, { reject }] of this.#waiting) reject(new Disconnected(String(name)))
    this.#waiting.clear()
  }

  #post(message: Call | Reply): void {
    try {
      this.#send(message)
    } catch {
      // The other process has just ended; `close` follows.
    }
  }

  #settle({ reply, value, error }: Reply): void {
    const waiting = this.#waiting.get(reply)
    this.#waiting.delete(reply)
    if (error === undefined) waiting?.resolve(value)
    else waiting?.reject(new Error(error))
  }

  async #answer({ call, argument, id }: Call): Promise<void> {
    let reply: Omit<Reply, 'reply'>
    try {
      const handler = this.#own[call as keyof Own] as unknown as (argument: unknown) => unknown
      reply = { value: await handler(argument) }
    } catch (error) {
      reply = { error: error instanceof Error ? error.message : String(error) }
    }
    if (id !== undefined && !this.#isClosed) this.#post({ reply: id, ...reply })
  }
}
