import type { Reference } from '../oci/names.ts'
import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { Pull, PullMark } from '../ports/pulls.ts'
import type { RowId } from '../ports/row-id.ts'
import { staysWritable } from './read-only.ts'

/** How many pulls wait to be written, and how many noted pulls are remembered. */
const pullsMax = 20_000

/** How many pulls one transaction records. */
const pullsAtOnce = 200

export interface PullSettings {
  /** Of the pulls of a tag or manifest in one period, one is recorded. 0: none. */
  readonly periodMs: number
  /** Whether a HEAD by tag counts as a pull. */
  readonly countsHead: boolean
}

/**
 * Collects which tags and manifests were pulled. A background job writes them, so no request waits for it. A request for a
 * row whose pull is noted costs one comparison with the mark of the row. A new row (after a commit, or without a cache)
 * costs a look-up in `#noted`. A crash loses the pulls that are not written; the next period records the tag again.
 */
export class PullRecorder {
  readonly #metadata: Pick<MetadataStore, 'transaction'>
  readonly #clock: Pick<Clock, 'now'>
  readonly #settings: PullSettings
  #noted = new Set<string>()
  #pending = new Map<string, Pull>()
  /** The present period. Marks with another number are out of date. */
  #period: number

  constructor(metadata: Pick<MetadataStore, 'transaction'>, clock: Pick<Clock, 'now'>, settings: PullSettings) {
    this.#metadata = metadata
    this.#clock = clock
    this.#settings = settings
    this.#period = this.#periodOf(clock.now())
  }

  /** Notes a GET of a manifest. */
  note(mark: PullMark, accountId: RowId, reference: Reference): void {
    if (mark.notedIn !== this.#period) this.#noteNew(mark, accountId, reference)
  }

  /** Notes a HEAD of a manifest, if it counts. */
  noteHead(mark: PullMark, accountId: RowId, reference: Reference): void {
    if (mark.notedIn !== this.#period && this.#settings.countsHead && 'tag' in reference) {
      this.#noteNew(mark, accountId, reference)
    }
  }

  #noteNew(mark: PullMark, accountId: RowId, reference: Reference): void {
    const { repositoryId, manifestId } = mark
    const tag = 'tag' in reference ? reference.tag : undefined
    const key = `${manifestId} ${tag ?? ''}`
    if (this.#settings.periodMs > 0 && !this.#noted.has(key)) {
      // A pull that finds no place is not marked, so the next pull of the row tries again.
      if (this.#pending.size >= pullsMax) return
      if (this.#noted.size >= pullsMax) this.#noted.clear()
      this.#noted.add(key)
      const repository = { accountId, id: repositoryId }
      this.#pending.set(key, { repository, manifestId, tag, pulledAt: this.#clock.now() })
    }
    mark.notedIn = this.#period
  }

  #periodOf(time: number): number {
    return Math.floor(time / Math.max(1, this.#settings.periodMs))
  }

  /** Writes the pulls since the last call. While the registry is read-only or the store is unavailable, they are kept. */
  async flush(): Promise<void> {
    const period = this.#periodOf(this.#clock.now())
    if (period !== this.#period) {
      this.#period = period
      this.#noted.clear()
    }
    const { periodMs } = this.#settings
    const pulls = [...this.#pending]
    for (let at = 0; at < pulls.length; at += pullsAtOnce) {
      const portion = pulls.slice(at, at + pullsAtOnce)
      const values = portion.map(([, pull]) => pull)
      const isWritten = await this.#metadata.transaction(
        async (tables) => {
          if (!(await staysWritable(tables))) return false
          await tables.pulls.record(values, periodMs)
          return true
        },
        { mayBeLost: true },
      )
      if (!isWritten) return
      // A pull that was noted during the write, in the next period, has replaced the written one.
      for (const [key, pull] of portion) if (this.#pending.get(key) === pull) this.#pending.delete(key)
    }
  }
}
