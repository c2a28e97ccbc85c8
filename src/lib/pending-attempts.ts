/** A group of attempts with one limit. */
export interface AttemptGroup {
  readonly key: string
  /** How many attempts of the group may still fail. */
  readonly failuresLeft: number
}

interface PendingGroup {
  /** Label -> number of pending attempts. */
  readonly labels: Map<string, number>
  readonly waiting: Set<() => void>
}

// A limit for each group, so that many attempts of one group cannot keep those of another from waiting.
const waitingMax = 1_000

/**
 * The attempts whose results are not known yet. Any of them may fail, so at most as many of a group are pending at once
 * as may still fail; others wait for a result. Attempts with the same label count as one.
 */
export class PendingAttempts {
  readonly #groups = new Map<string, PendingGroup>()

  /** The first of the groups in which this label must wait. */
  findFull(groups: readonly AttemptGroup[], label: string): AttemptGroup | undefined {
    return groups.find(({ key, failuresLeft }) => {
      const labels = this.#groups.get(key)?.labels
      // One attempt may always be pending, because there is no other for which it could wait.
      return labels !== undefined && !labels.has(label) && labels.size >= Math.max(1, failuresLeft)
    })
  }

  /** Adds a pending attempt to the groups. The returned function removes it. */
  add(groups: readonly AttemptGroup[], label: string): () => void {
    for (const { key } of groups) {
      const group = this.#groups.get(key) ?? { labels: new Map(), waiting: new Set() }
      this.#groups.set(key, group)
      group.labels.set(label, (group.labels.get(label) ?? 0) + 1)
    }
    return () => {
      for (const { key } of groups) this.#remove(key, label)
    }
  }

  /** Waits for the result of an attempt of the group. False if that takes too long, or too many attempts wait. */
  async waitForResult({ key }: AttemptGroup, waitMaxMs: number): Promise<boolean> {
    const waiting = this.#groups.get(key)?.waiting
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

  #remove(key: string, label: string): void {
    const group = this.#groups.get(key)
    if (group === undefined) return
    const count = (group.labels.get(label) ?? 1) - 1
    if (count === 0) group.labels.delete(label)
    else group.labels.set(label, count)
    if (group.labels.size === 0) this.#groups.delete(key)
    for (const wake of group.waiting) wake()
  }
}
