/** A group of attempts that share one limit. */
export interface Place {
  readonly key: string
  /** How many attempts of this place may still fail. */
  readonly room: number
}

interface Occupancy {
  /** Credential -> how many attempts with it are under way. */
  readonly labels: Map<string, number>
  readonly waiting: Set<() => void>
}

// For each place: many attempts of one place must not take the room in which those of another wait.
const waitingMax = 1_000

/**
 * The attempts that are being judged. Attempts with the same label count as one. Each may turn out to be a failure, so no
 * more different labels of a place are judged at the same time than may still fail. Others wait until one of these is
 * decided. A good one gives its room back.
 */
export class PendingAttempts {
  readonly #places = new Map<string, Occupancy>()

  /** The first of the places that has no room for this label. */
  findFull(places: readonly Place[], label: string): Place | undefined {
    return places.find(({ key, room }) => {
      const labels = this.#places.get(key)?.labels
      // At least one may always be judged: it cannot wait for others where there are none.
      return labels !== undefined && !labels.has(label) && labels.size >= Math.max(1, room)
    })
  }

  /** Takes up the places until the function is called that this gives. */
  enter(places: readonly Place[], label: string): () => void {
    for (const { key } of places) {
      const occupancy = this.#places.get(key) ?? { labels: new Map(), waiting: new Set() }
      this.#places.set(key, occupancy)
      occupancy.labels.set(label, (occupancy.labels.get(label) ?? 0) + 1)
    }
    return () => {
      for (const { key } of places) this.#leave(key, label)
    }
  }

  /** Waits until an attempt in the place has been decided; false when that takes too long, or too many wait there. */
  async waitForDecision({ key }: Place, waitMaxMs: number): Promise<boolean> {
    const waiting = this.#places.get(key)?.waiting
    if (waiting === undefined) return true
    if (waiting.size >= waitingMax) return false
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const wake = (): void => resolve(true)
    const timer = setTimeout(() => resolve(false), waitMaxMs)
    waiting.add(wake)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      waiting.delete(wake)
    }
  }

  #leave(key: string, label: string): void {
    const occupancy = this.#places.get(key)
    if (occupancy === undefined) return
    const left = (occupancy.labels.get(label) ?? 1) - 1
    if (left === 0) occupancy.labels.delete(label)
    else occupancy.labels.set(label, left)
    if (occupancy.labels.size === 0) this.#places.delete(key)
    for (const wake of occupancy.waiting) wake()
  }
}
