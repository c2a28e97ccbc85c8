/** One connection to the database. */
export interface Session {
  /** It broke or did not answer in time. It must not be used any more. */
  readonly isLost: boolean
  /** Time since the last statement ended; 0 while one runs. */
  readonly idleMs: number
  close(): void
}

/** The server is stopping. */
export class PoolClosed extends Error {
  override readonly name = 'PoolClosed'
}

/** Routers and load balancers drop idle connections without telling either end. */
const idleMaxMs = 180_000

/**
 * Connections of two kinds: exclusive ones, each lent to one transaction at a time, and a few shared ones, on which look-ups
 * of many callers run at once. A lost session is never used again. What broke one has probably broken all of them, so all idle
 * sessions are closed with it: after a failover the pool connects again at once, instead of failing once for each session.
 */
export class SessionPool<S extends Session> {
  readonly #open: () => Promise<S>
  /** Used in turn, the one that is idle for longest first, so that none is idle for too long. */
  readonly #idle: S[] = []
  readonly #shared: (S | undefined)[]
  readonly #opening: (Promise<S> | undefined)[]
  #next = 0
  #inUse = 0
  #closed: PromiseWithResolvers<void> | undefined

  constructor(sharedCount: number, open: () => Promise<S>) {
    this.#open = open
    this.#shared = Array.from({ length: sharedCount })
    this.#opening = Array.from({ length: sharedCount })
  }

  /** Lends a session to `act` alone. */
  async lend<T>(act: (session: S) => Promise<T>): Promise<T> {
    this.#enter()
    try {
      const session = this.#takeIdle() ?? (await this.#open())
      try {
        return await act(session)
      } finally {
        this.#return(session)
      }
    } finally {
      this.#leave()
    }
  }

  /** Runs `act` on a session that other callers use at the same time: nothing slow, and no transaction. */
  async share<T>(act: (session: S) => Promise<T>): Promise<T> {
    this.#enter()
    try {
      this.#next = (this.#next + 1) % this.#shared.length
      const current = this.#shared[this.#next]
      const session = current !== undefined && isUsable(current) ? current : await this.#reopen(this.#next)
      try {
        return await act(session)
      } finally {
        if (session.isLost) this.#closeIdle()
      }
    } finally {
      this.#leave()
    }
  }

  /** Waits for the calls that are running. */
  async close(): Promise<void> {
    this.#closed ??= Promise.withResolvers()
    this.#closeIdle()
    if (this.#inUse === 0) this.#closed.resolve()
    await this.#closed.promise
    for (const session of this.#shared) session?.close()
  }

  #enter(): void {
    if (this.#closed !== undefined) throw new PoolClosed()
    this.#inUse += 1
  }

  #leave(): void {
    this.#inUse -= 1
    if (this.#inUse === 0) this.#closed?.resolve()
  }

  #takeIdle(): S | undefined {
    for (let session = this.#idle.shift(); session !== undefined; session = this.#idle.shift()) {
      if (isUsable(session)) return session
      session.close()
    }
    return undefined
  }

  #return(session: S): void {
    if (session.isLost) this.#closeIdle()
    if (session.isLost || this.#closed !== undefined) session.close()
    else this.#idle.push(session)
  }

  /** Of several callers that find the session lost, the first opens a new one, and the others wait for it. */
  #reopen(index: number): Promise<S> {
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

  #closeIdle(): void {
    for (const session of this.#idle.splice(0)) session.close()
    for (const session of this.#shared) if (session !== undefined && session.idleMs > 0) session.close()
  }
}

function isUsable(session: Session): boolean {
  return !session.isLost && session.idleMs <= idleMaxMs
}
