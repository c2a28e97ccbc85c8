/** A place that attempts take up while they are judged: a network, or the user whose password is tried. */
export interface Place {
  readonly key: string
  /** How many attempts of this place may still fail. */
  readonly room: number
}

interface Occupancy {
  /** Credential -> how many attempts with it are under way. */
  readonly credentials: Map<string, number>
  readonly waiting: Set<() => void>
}

// Each waits for a bounded time, and holds a request and no more.
const waitingMax = 1_000

/**
 * The attempts that are being judged. Each may turn out to be a failure, so no more different credentials are judged at
 * the same time than may still fail. Others wait until one of these is decided: a good one gives its room back.
 */
export class AttemptsUnderWay {
  readonly #places = new Map<string, Occupancy>()
  #waiting = 0

  /** The first of the places that has no room for the credential. */
  findFull(places: readonly Place[], credential: string): Place | undefined {
    return places.find(({ key, room }) => {
      const credentials = this.#places.get(key)?.credentials
      // At least one may always be judged: it cannot wait for others where there are none.
      return credentials !== undefined && !credentials.has(credential) && credentials.size >= Math.max(1, room)
    })
  }

  /** Takes up the places until the function is called that this gives. */
  enter(places: readonly Place[], credential: string): () => void {
    for (const { key } of places) {
      const occupancy = this.#places.get(key) ?? { credentials: new Map(), waiting: new Set() }
      this.#places.set(key, occupancy)
      occupancy.credentials.set(credential, (occupancy.credentials.get(credential) ?? 0) + 1)
    }
    return () => {
      for (const { key } of places) this.#leave(key, credential)
    }
  }

  /** Waits until an attempt in the place has been decided; false when that takes too long, or too many wait. */
  async change({ key }: Place, waitMaxMs: number): Promise<boolean> {
    const waiting = this.#places.get(key)?.waiting
    if (waiting === undefined) return true
    if (this.#waiting >= waitingMax) return false
    this.#waiting += 1
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const wake = (): void => resolve(true)
    const timer = setTimeout(() => resolve(false), waitMaxMs)
    waiting.add(wake)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      waiting.delete(wake)
      this.#waiting -= 1
    }
  }

  #leave(key: string, credential: string): void {
    const occupancy = this.#places.get(key)
    if (occupancy === undefined) return
    const left = (occupancy.credentials.get(credential) ?? 1) - 1
    if (left === 0) occupancy.credentials.delete(credential)
    else occupancy.credentials.set(credential, left)
    if (occupancy.credentials.size === 0) this.#places.delete(key)
    for (const wake of occupancy.waiting) wake()
  }
}
