import type { NewAuditEntry } from '../ports/audit.ts'
import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import { isReadOnly, staysWritable } from './read-only.ts'

type Needs = { readonly metadata: Pick<MetadataStore, 'audit' | 'marks' | 'users' | 'transaction'> }

export interface AuditSettings {
  /** How long entries are kept. 0: nothing is recorded. */
  readonly keepMs: number
  /** Whether the registry has users of its own. */
  readonly hasUsers: boolean
}

/** The time and the number of an entry are added when it is recorded. Empty texts count as undefined. */
export type Deed = Omit<NewAuditEntry, 'count' | 'happenedAt'>

/** What is counted: one entry for all deeds that are alike, in a window of time. */
export interface Noted extends Deed {
  /** The user whose name a failed login gave. If there is such a user, the entry belongs to the user's account. */
  readonly claimedUser?: string | undefined
}

interface Tally {
  readonly noted: Noted
  readonly startedAt: number
  readonly endsAt: number
  /** Not written yet. */
  count: number
  isWritten: boolean
}

const loginWindowMs = 3_600_000
const refusalWindowMs = 60_000

/**
 * How many different logins and refusals are counted at once, how many begin per hour and account, and how many names of one
 * client are looked up per minute.
 */
const talliesMax = 10_000
const startsMax = 1_000
const namesMax = 20
const entriesAtOnce = 200
const textMax = 512

/**
 * Records what callers do. Changes are written at once. Logins and refusals are counted in memory, and a job writes them:
 * the first of each kind with the next `flush`, and the number of the further ones when the window of time is over. So a
 * flood of refusals makes few entries: after `startsMax` different ones, all others of the account in this hour are counted
 * together, without their caller and target.
 */
export class AuditRecorder {
  readonly #needs: Needs
  readonly #clock: Pick<Clock, 'now'>
  readonly #settings: AuditSettings
  readonly #tallies = new Map<string, Tally>()
  /** The names that clients have given in failed logins, by everything else that is known of the login. */
  readonly #tried = new Map<string, { readonly endsAt: number; readonly names: Set<string> }>()
  #starts = new Map<string, number>()
  #hour = 0

  constructor(needs: Needs, clock: Pick<Clock, 'now'>, settings: AuditSettings) {
    this.#needs = needs
    this.#clock = clock
    this.#settings = settings
  }

  /** Records a change. Resolves when the entry is durable. */
  async record(deed: Deed): Promise<void> {
    if (this.#settings.keepMs === 0) return
    await this.#needs.metadata.audit.add([toEntry(deed, 1, this.#clock.now())])
  }

  noteLogin(login: Deed): void {
    this.#note(login, loginWindowMs)
  }

  noteRefusal(refusal: Noted): void {
    this.#note(this.#limitNames(refusal), refusalWindowMs)
  }

  /** Of the names that a client tries within a window, the first ones are looked up. */
  #limitNames(refusal: Noted): Noted {
    const { claimedUser, ...nameless } = refusal
    if (claimedUser === undefined) return refusal
    const key = keyOf(nameless)
    const now = this.#clock.now()
    let tried = this.#tried.get(key)
    if (tried === undefined || tried.endsAt <= now) {
      if (this.#tried.size >= talliesMax) this.#tried.clear()
      tried = { endsAt: now + refusalWindowMs, names: new Set() }
      this.#tried.set(key, tried)
    }
    if (!tried.names.has(claimedUser) && tried.names.size >= namesMax) return nameless
    tried.names.add(claimedUser)
    return refusal
  }

  #note(noted: Noted, windowMs: number): void {
    if (this.#settings.keepMs === 0) return
    const now = this.#clock.now()
    const key = keyOf(noted)
    const tally = this.#tallies.get(key)
    if (tally !== undefined && now < tally.endsAt) tally.count += 1
    else if (this.#mayStart(noted, now)) this.#start(key, noted, now, windowMs)
    else this.#noteWithOthers(noted, now)
  }

  /** The next flush writes what an old tally of the same key has counted. */
  #start(key: string, noted: Noted, now: number, windowMs: number): void {
    const old = this.#tallies.get(key)
    if (old !== undefined && old.count > 0) this.#tallies.set(`${key}\n${old.startedAt}`, old)
    this.#tallies.set(key, { noted, startedAt: now, endsAt: now + windowMs, count: 1, isWritten: false })
  }

  #mayStart({ account = '' }: Noted, now: number): boolean {
    const hour = Math.floor(now / 3_600_000)
    if (hour !== this.#hour || this.#starts.size > talliesMax) this.#starts = new Map()
    this.#hour = hour
    const started = this.#starts.get(account) ?? 0
    if (started >= startsMax || this.#tallies.size >= talliesMax) return false
    this.#starts.set(account, started + 1)
    return true
  }

  #noteWithOthers(noted: Noted, now: number): void {
    const { outcome, reason, action } = noted
    // Even their accounts are counted together if there are too many.
    const account = this.#tallies.size < talliesMax ? noted.account : undefined
    const others: Noted = {
      account,
      actor: undefined,
      credential: undefined,
      keyName: undefined,
      address: undefined,
      action: action === 'login' ? action : 'others',
      target: undefined,
      repository: undefined,
      outcome,
      reason,
    }
    const key = keyOf(others)
    const tally = this.#tallies.get(key)
    if (tally !== undefined && now < tally.endsAt) tally.count += 1
    else this.#start(key, others, now, refusalWindowMs)
  }

  /** Writes what is due. With `isLast`, everything. While the registry is read-only, it waits. */
  async flush({ isLast = false } = {}): Promise<void> {
    const now = this.#clock.now()
    for (const [key, { count, endsAt }] of this.#tallies) {
      if (count === 0 && endsAt <= now) this.#tallies.delete(key)
    }
    for (const [key, { endsAt }] of this.#tried) if (endsAt <= now) this.#tried.delete(key)
    const isDue = (tally: Tally) => tally.count > 0 && (isLast || !tally.isWritten || tally.endsAt <= now)
    const due = [...this.#tallies.values()].filter(isDue)
    if (due.length === 0 || (await isReadOnly(this.#needs))) return
    for (let at = 0; at < due.length; at += entriesAtOnce) {
      const portion = due.slice(at, at + entriesAtOnce).map((tally) => ({ tally, count: tally.count }))
      const entries = await Promise.all(
        portion.map(async ({ tally, count }) => toEntry(await this.#resolve(tally.noted), count, tally.startedAt)),
      )
      await this.#needs.metadata.audit.add(mergeAlike(entries))
      for (const { tally, count } of portion) {
        tally.count -= count
        tally.isWritten = true
      }
    }
  }

  /** A name that belongs to no user is not recorded: people type passwords into the wrong field. */
  async #resolve({ claimedUser, ...deed }: Noted): Promise<Deed> {
    if (claimedUser === undefined || !this.#settings.hasUsers) return deed
    const user = await this.#needs.metadata.users.find(claimedUser)
    return user === undefined ? deed : { ...deed, account: user.account, actor: user.name }
  }
}

function keyOf(noted: Noted): string {
  return JSON.stringify([
    noted.account,
    noted.actor,
    noted.credential,
    noted.address,
    noted.action,
    noted.target?.slice(0, textMax),
    noted.outcome,
    noted.reason,
    noted.claimedUser,
  ])
}

/** Failed logins whose names belong to no user are alike. */
function mergeAlike(entries: readonly NewAuditEntry[]): NewAuditEntry[] {
  const merged = new Map<string, NewAuditEntry>()
  for (const entry of entries) {
    const key = keyOf(entry)
    const { count, happenedAt } = merged.get(key) ?? { count: 0, happenedAt: entry.happenedAt }
    const first = Math.min(happenedAt, entry.happenedAt)
    merged.set(key, { ...entry, count: count + entry.count, happenedAt: first })
  }
  return [...merged.values()]
}

function toEntry(deed: Deed, count: number, happenedAt: number): NewAuditEntry {
  return {
    account: toText(deed.account),
    actor: toText(deed.actor),
    credential: deed.credential,
    keyName: toText(deed.keyName),
    address: toText(deed.address),
    action: deed.action,
    target: toText(deed.target),
    repository: toText(deed.repository),
    outcome: deed.outcome,
    reason: deed.reason,
    count,
    happenedAt,
  }
}

/** PostgreSQL accepts neither NUL nor half a character, and would refuse all entries of the batch. */
function toText(text: string | undefined): string | undefined {
  return text?.slice(0, textMax).replaceAll('\0', '\uFFFD').toWellFormed()
}

const removedAtOnce = 1_000
const removalsMax = 1_000

/** Removes old entries in portions. `keepMs` 0 removes all of them. */
export async function removeOldAuditEntries(
  { metadata }: { readonly metadata: Pick<MetadataStore, 'transaction'> },
  keepMs: number,
  shouldStop: () => boolean = () => false,
): Promise<number> {
  let removed = 0
  for (let portions = 0; portions < removalsMax && !shouldStop(); portions += 1) {
    const count = await metadata.transaction(async (tables) =>
      (await staysWritable(tables)) ? tables.audit.removeOld(keepMs, removedAtOnce) : 0,
    )
    removed += count
    if (count < removedAtOnce) break
  }
  return removed
}
