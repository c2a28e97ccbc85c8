import type { AuditBatch, AuditEntry, AuditFilter, AuditPosition } from '../ports/audit.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import { formatPosition, parsePosition } from './pages.ts'

// The entries of the audit log and the events, as one list.

/** How many entries of each source one request looks at, in portions, if few of them match the filter. */
const lookAtOnce = 2_000
const portionsMax = 10

/** Where a list continues in each of its sources. Undefined: at the newest. `end`: the source has no more. */
export interface AuditCursor {
  readonly log: AuditPosition | 'end' | undefined
  readonly events: AuditPosition | 'end' | undefined
}

const theStart: AuditCursor = { log: undefined, events: undefined }

type Source = (before: AuditPosition | undefined, range: { limit: number; lookAt: number }) => Promise<AuditBatch>

/**
 * Entries of the log and events of the account, or of all accounts, the newest first. A page may have fewer entries than
 * `limit`, and even none, although `next` leads to more.
 */
export async function listAudit(
  { metadata }: { readonly metadata: Pick<MetadataStore, 'audit' | 'accounts'> },
  account: string | undefined,
  filter: AuditFilter,
  { after = theStart, limit }: { readonly after: AuditCursor | undefined; readonly limit: number },
): Promise<{ readonly items: readonly AuditEntry[]; readonly next: AuditCursor | undefined }> {
  if (limit === 0) return { items: [], next: undefined }
  const accountId = account === undefined ? undefined : (await metadata.accounts.find(account))?.id
  const hasEvents = (filter.outcome ?? 'done') === 'done' && (account === undefined || accountId !== undefined)
  const log = await read((before, range) => metadata.audit.list(account, filter, before, range), after.log, limit)
  const events = await read(
    (before, range) => metadata.audit.listEvents(accountId, filter, before?.id, range),
    hasEvents ? after.events : 'end',
    limit,
  )
  return merge(log, events, limit)
}

interface Read {
  readonly entries: readonly AuditEntry[]
  /** Where the source continues behind `entries`. */
  readonly next: AuditPosition | 'end'
  readonly start: AuditPosition | 'end' | undefined
}

async function read(source: Source, start: Read['start'], limit: number): Promise<Read> {
  const entries: AuditEntry[] = []
  let next = start
  for (let portions = 0; portions < portionsMax && next !== 'end' && entries.length < limit; portions += 1) {
    const batch: AuditBatch = await source(next, { limit: limit - entries.length, lookAt: lookAtOnce })
    entries.push(...batch.entries)
    next = batch.next ?? 'end'
  }
  return { entries, next: next ?? 'end', start }
}

/** Ends where a source has more entries that were not read: they may be newer than what the other source has next. */
function merge(log: Read, events: Read, limit: number) {
  const items: AuditEntry[] = []
  let [atLog, atEvents] = [0, 0]
  while (items.length < limit) {
    const [one, other] = [log.entries[atLog], events.entries[atEvents]]
    if ((one === undefined && log.next !== 'end') || (other === undefined && events.next !== 'end')) break
    if (one === undefined && other === undefined) break
    const isFromLog = other === undefined || (one !== undefined && one.happenedAt >= other.happenedAt)
    const taken = isFromLog ? one : other
    if (isFromLog) atLog += 1
    else atEvents += 1
    if (taken !== undefined) items.push(taken)
  }
  const next: AuditCursor = { log: positionAt(log, atLog), events: positionAt(events, atEvents) }
  return { items, next: next.log === 'end' && next.events === 'end' ? undefined : next }
}

/** Where a source continues after `taken` of its entries. */
function positionAt({ entries, next, start }: Read, taken: number): Read['start'] {
  return taken === entries.length ? next : (entries[taken - 1] ?? start)
}

/** As `last` of a page. */
export function formatAuditCursor({ log, events }: AuditCursor): string {
  return [log, events].map(formatPart).join('_')
}

function formatPart(part: AuditCursor['log']): string {
  return part === undefined ? 'start' : part === 'end' ? part : formatPosition(part.happenedAt, part.id)
}

/** The inverse of `formatAuditCursor`. A text that is no cursor means the start. */
export function parseAuditCursor(text: string | undefined): AuditCursor {
  const [log, events] = (text ?? '').split('_').map(parsePart)
  return { log, events }
}

function parsePart(text: string): AuditCursor['log'] {
  return text === 'end' ? text : parsePosition(text, (happenedAt, id) => ({ happenedAt, id }))
}
