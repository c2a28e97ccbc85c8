/** The bytes did not become free within the time that a request may wait, or too many requests wait already. */
export class NoRoom extends Error {
  override readonly name = 'NoRoom'

  constructor({ reservedBytes, bytesMax }: { readonly reservedBytes: number; readonly bytesMax: number }) {
    super(`no memory became free in time: ${reservedBytes} of ${bytesMax} bytes are reserved`)
  }
}

export interface BudgetSettings {
  readonly bytesMax: number
  /** The most that one holder gets, even if more is free. */
  readonly bytesPerHolderMax: number
  /** The part of the budget that only reservations up to `smallBytes` may use. */
  readonly bytesForSmall: number
  readonly smallBytes: number
  readonly waitMs: number
  /** The most that all waiters together, and those of one holder, may keep in memory outside of the budget. */
  readonly bytesWaitingMax: number
  readonly bytesWaitingPerHolderMax: number
  /** While others wait, a hold that is older than this is asked to release its bytes. */
  readonly holdMs: number
}

/** How the budget deals with a hold or a waiter. */
export interface HoldTerms {
  /**
   * Whether the bytes are no longer needed, for holds that are not released. The budget checks this from time to time.
   */
  readonly isOver?: () => boolean
  /** The bytes in memory outside of the budget while this waits. */
  readonly bytesWhileWaiting?: number
  /** Asks the holder to release the bytes soon. May be called repeatedly. */
  readonly askToRelease: () => void
}

interface Waiter {
  readonly holder: string
  readonly bytes: number
  readonly terms: HoldTerms
  readonly grant: () => void
  readonly refuse: () => void
}

const checkEveryMs = 250
const collectAtMin = 64
/** A check of many holds takes milliseconds, so failed reservations cause it at most this often. */
const collectEveryMs = 50
/** After this time, a holder that has not released its bytes is asked again. */
const askAgainAfterMs = 5_000

/**
 * A limit on bytes that many holders share. A holder reserves bytes before it uses them. If they are not free, it waits
 * in a queue for a bounded time. A waiter that exceeds only the share of its own holder does not delay the others.
 */
export class ByteBudget {
  readonly #settings: BudgetSettings
  readonly #now: () => number
  readonly #holds = new Set<ByteHold>()
  readonly #bytesOf = new Map<string, number>()
  readonly #waiting = new Set<Waiter>()
  #bytes = 0
  /** True while a waiter lacks only bytes of the total, not of its share. Later reservations must not overtake it. */
  #isTight = false
  #timer: Timer | undefined
  #collectAt = collectAtMin
  #collectedAt = Number.NEGATIVE_INFINITY

  constructor(settings: BudgetSettings, now: () => number = () => performance.now()) {
    this.#settings = settings
    this.#now = now
  }

  get reservedBytes(): number {
    return this.#bytes
  }

  /** Reserves without waiting. Undefined if the bytes are not free; then `waitForRoom` can wait for them. */
  tryReserve(holder: string, bytes: number, terms: HoldTerms): ByteHold | undefined {
    const wanted = this.#clamp(bytes)
    if (this.#mayTake(holder, wanted)) return this.force(holder, wanted, terms)
    if (!this.#collectIfDue()) return undefined
    return this.#mayTake(holder, wanted) ? this.force(holder, wanted, terms) : undefined
  }

  /** Reserves as soon as the bytes are free. Rejects with `NoRoom` if the wait is too long. */
  async waitForRoom(holder: string, bytes: number, terms: HoldTerms): Promise<ByteHold> {
    if (!this.#mayWait(holder, terms)) throw this.#noRoom()
    return new Promise((resolve, reject) => {
      const wanted = this.#clamp(bytes)
      const leave = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(waiter)
      }
      const waiter: Waiter = {
        holder,
        bytes: wanted,
        terms,
        grant: () => {
          leave()
          resolve(this.force(holder, wanted, terms))
        },
        refuse: () => {
          leave()
          reject(this.#noRoom())
        },
      }
      const timer = setTimeout(() => {
        waiter.refuse()
        this.#admit()
      }, this.#settings.waitMs)
      this.#waiting.add(waiter)
      this.#admit()
      this.#timer ??= setInterval(() => this.#makeRoom(), checkEveryMs)
    })
  }

  /** Reserves even if the bytes are not free. For work that must not wait. */
  force(holder: string, bytes: number, terms: HoldTerms): ByteHold {
    // Holds that are over are dropped while they are young, which is cheap for the garbage collector of the runtime.
    if (this.#holds.size >= this.#collectAt) {
      this.#collect()
      this.#collectAt = Math.max(collectAtMin, 2 * this.#holds.size)
    }
    const hold = new ByteHold(holder, terms, {
      now: this.#now,
      add: (by) => this.#add(holder, by),
      removed: (gone) => {
        this.#holds.delete(gone)
        this.#admit()
      },
    })
    this.#holds.add(hold)
    hold.resize(bytes)
    return hold
  }

  /** A reservation that is larger than a share gets the whole share, because it could never be satisfied. */
  #clamp(bytes: number): number {
    return Math.min(bytes, this.#settings.bytesPerHolderMax, this.#largeMax())
  }

  #largeMax(): number {
    return this.#settings.bytesMax - this.#settings.bytesForSmall
  }

  #mayTake(holder: string, bytes: number): boolean {
    const isSmall = bytes <= this.#settings.smallBytes
    return (isSmall || !this.#isTight) && this.#fitsTotal(bytes) && this.#fitsShare(holder, bytes)
  }

  #mayWait(holder: string, { bytesWhileWaiting = 0 }: HoldTerms): boolean {
    if (bytesWhileWaiting === 0) return true
    let total = bytesWhileWaiting
    let ofHolder = bytesWhileWaiting
    for (const waiter of this.#waiting) {
      const bytes = waiter.terms.bytesWhileWaiting ?? 0
      total += bytes
      if (waiter.holder === holder) ofHolder += bytes
    }
    return total <= this.#settings.bytesWaitingMax && ofHolder <= this.#settings.bytesWaitingPerHolderMax
  }

  #fitsTotal(bytes: number): boolean {
    const max = bytes <= this.#settings.smallBytes ? this.#settings.bytesMax : this.#largeMax()
    return this.#bytes + bytes <= max
  }

  #fitsShare(holder: string, bytes: number): boolean {
    return (this.#bytesOf.get(holder) ?? 0) + bytes <= this.#settings.bytesPerHolderMax
  }

  #add(holder: string, bytes: number): void {
    this.#bytes += bytes
    const left = (this.#bytesOf.get(holder) ?? 0) + bytes
    if (left === 0) this.#bytesOf.delete(holder)
    else this.#bytesOf.set(holder, left)
  }

  /** Grants waiters in the order of their arrival. Skips a waiter whose holder has used up its share. */
  #admit(): void {
    if (this.#waiting.size === 0) return
    this.#isTight = false
    for (const waiter of this.#waiting) {
      if (waiter.terms.isOver?.()) {
        waiter.refuse()
        continue
      }
      if (!this.#fitsShare(waiter.holder, waiter.bytes)) continue
      if (this.#mayTake(waiter.holder, waiter.bytes)) waiter.grant()
      else this.#isTight = true
    }
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #noRoom(): NoRoom {
    return new NoRoom({ reservedBytes: this.#bytes, bytesMax: this.#settings.bytesMax })
  }

  #collect(): void {
    this.#collectedAt = this.#now()
    for (const hold of this.#holds) if (hold.isOver()) hold.release()
  }

  /** For failed reservations. Does nothing if many holds were checked a moment ago. */
  #collectIfDue(): boolean {
    if (this.#holds.size >= collectAtMin && this.#now() - this.#collectedAt < collectEveryMs) return false
    this.#collect()
    return true
  }

  /** Asks the oldest holds to release their bytes, as many as the waiters need. */
  #makeRoom(): void {
    this.#collect()
    this.#admit()
    const holders = new Set([...this.#waiting].map(({ holder }) => holder))
    let neededBytes = 0
    for (const { bytes } of this.#waiting) neededBytes += bytes
    for (const hold of this.#holds) {
      if (neededBytes <= 0) return
      if (!this.#isTight && !holders.has(hold.holder)) continue
      if (hold.ageMs < this.#settings.holdMs) continue
      neededBytes -= hold.bytes
      hold.ask()
    }
  }
}

interface HoldOwner {
  now(): number
  add(bytes: number): void
  removed(hold: ByteHold): void
}

/** Reserved bytes. */
export class ByteHold {
  readonly holder: string
  readonly #owner: HoldOwner
  #terms: HoldTerms
  #since: number
  #bytes = 0
  #askedAt: number | undefined
  #isReleased = false

  constructor(holder: string, terms: HoldTerms, owner: HoldOwner) {
    this.holder = holder
    this.#terms = terms
    this.#owner = owner
    this.#since = owner.now()
  }

  get bytes(): number {
    return this.#bytes
  }

  get ageMs(): number {
    return this.#owner.now() - this.#since
  }

  isOver(): boolean {
    return this.#terms.isOver?.() ?? false
  }

  resize(bytes: number): void {
    if (this.#isReleased) return
    this.#owner.add(bytes - this.#bytes)
    this.#bytes = bytes
  }

  /** The same request continues with other bytes and terms. */
  become(bytes: number, terms: HoldTerms): void {
    this.resize(bytes)
    this.#terms = terms
    this.#since = this.#owner.now()
    this.#askedAt = undefined
  }

  ask(): void {
    const now = this.#owner.now()
    if (this.#askedAt !== undefined && now - this.#askedAt < askAgainAfterMs) return
    this.#askedAt = now
    this.#terms.askToRelease()
  }

  /** Idempotent. */
  release(): void {
    if (this.#isReleased) return
    this.resize(0)
    this.#isReleased = true
    this.#owner.removed(this)
  }
}
