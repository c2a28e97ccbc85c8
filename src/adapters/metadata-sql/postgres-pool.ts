/** One connection to the database, from its begin to its end. */
export interface Session {
  /** It broke, or did not answer in time: nothing more may be asked of it. */
  readonly isLost: boolean
  /** How long nothing has been asked of it. */
  readonly restedMs: number
  close(): void
}

/** The server is going down. */
export class PoolClosed extends Error {
  override readonly name = 'PoolClosed'
}

/** Silent for longer, a connection may be gone without a word: routers and balancers forget those that rest. */
const restMaxMs = 180_000

/**
 * Sessions that are lent to one at a time, and a few that many share. None comes back into use once it is lost; and what
 * broke one has most likely broken all, so those that rest are closed with it: a server that was moved, or that is only a
 * standby now, is asked for anew instead of once for each session.
 */
export class SessionPool<S extends Session> {
  readonly #open: () => Promise<S>
  /** The longest at rest is the next to be used: none of them rests for much longer than the others. */
  readonly #resting: S[] = []
  readonly #shared: (S | undefined)[]
  readonly #opening: (Promise<S> | undefined)[]
  #next = 0
  #inUse = 0
  #end: PromiseWithResolvers<void> | undefined

  constructor(sharedCount: number, open: () => Promise<S>) {
    this.#open = open
    this.#shared = Array.from({ length: sharedCount })
    this.#opening = Array.from({ length: sharedCount })
  }

  /** A session for `act` alone. */
  async lend<T>(act: (session: S) => Promise<T>): Promise<T> {
    this.#begin()
    try {
      const session = this.#findRested() ?? (await this.#open())
      try {
        return await act(session)
      } finally {
        this.#takeBack(session)
      }
    } finally {
      this.#finish()
    }
  }

  /** A session on which the statements of others are under way as well: nothing that takes long, and no transaction. */
  async share<T>(act: (session: S) => Promise<T>): Promise<T> {
    this.#begin()
    try {
      this.#next = (this.#next + 1) % this.#shared.length
      const known = this.#shared[this.#next]
      const session = known !== undefined && isGood(known) ? known : await this.#renew(this.#next)
      try {
        return await act(session)
      } finally {
        if (session.isLost) this.#closeResting()
      }
    } finally {
      this.#finish()
    }
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    this.#end ??= Promise.withResolvers()
    this.#closeResting()
    if (this.#inUse === 0) this.#end.resolve()
    await this.#end.promise
    for (const session of this.#shared) session?.close()
  }

  #begin(): void {
    if (this.#end !== undefined) throw new PoolClosed()
    this.#inUse += 1
  }

  #finish(): void {
    this.#inUse -= 1
    if (this.#inUse === 0) this.#end?.resolve()
  }

  #findRested(): S | undefined {
    for (let session = this.#resting.shift(); session !== undefined; session = this.#resting.shift()) {
      if (isGood(session)) return session
      session.close()
    }
    return undefined
  }

  #takeBack(session: S): void {
    if (session.isLost) this.#closeResting()
    if (session.isLost || this.#end !== undefined) session.close()
    else this.#resting.push(session)
  }

  /** Of many that find it gone, the first opens it anew and the others wait for that one. */
  #renew(index: number): Promise<S> {
    const opening =
      this.#opening[index] ??
      this.#open().finally(() => {
        this.#opening[index] = undefined
      })
    this.#opening[index] = opening
    return opening.then((session) => {
      if (this.#shared[index] !== session) {
        this.#shared[index]?.close()
        this.#shared[index] = session
      }
      return session
    })
  }

  #closeResting(): void {
    for (const session of this.#resting.splice(0)) session.close()
    for (const session of this.#shared) if (session !== undefined && session.restedMs > 0) session.close()
  }
}

function isGood(session: Session): boolean {
  return !session.isLost && session.restedMs <= restMaxMs
}
