import type {
  Audit,
  AuditBatch,
  AuditEntry,
  AuditFilter,
  AuditOutcome,
  AuditPosition,
  NewAuditEntry,
} from '../../../ports/audit.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable, Value } from '../database.ts'

interface AuditRow {
  readonly id: number
  readonly account: string | null
  readonly happened_at: number
  readonly actor: string | null
  readonly credential: string | null
  readonly key_name: string | null
  readonly address: string | null
  readonly action: string
  readonly target: string | null
  readonly repository: string | null
  readonly outcome: string
  readonly reason: string | null
  readonly times: number
}

const columns =
  'account, happened_at, actor, credential, key_name, address, action, target, repository, outcome, reason, times'

const add = `
INSERT INTO audit (${columns})
SELECT each.value ->> 'account', CAST(each.value ->> 'happenedAt' AS bigint), each.value ->> 'actor', each.value ->> 'credential',
  each.value ->> 'keyName', each.value ->> 'address', each.value ->> 'action', each.value ->> 'target',
  each.value ->> 'repository', each.value ->> 'outcome', each.value ->> 'reason', CAST(each.value ->> 'count' AS bigint)
FROM {each $1}`

// Index audit_of_account or audit_by_time, backwards. The first statement finds the end of the range that the second one reads.
const inRange = (account: string) =>
  `FROM audit WHERE ${account} (happened_at, id) < ($2, $3) AND (happened_at, id) >= ($4, $5)`
const inOrder = 'ORDER BY happened_at DESC, id DESC'
const rangeEnd = (account: string) => `SELECT happened_at, id ${inRange(account)} ${inOrder} LIMIT 1 OFFSET $6`
const list = (account: string) => `
SELECT id, ${columns} ${inRange(account)} AND ($6 = '' OR actor = $6) AND ($7 = '' OR action = $7)
  AND ($8 = '' OR repository = $8) AND ($9 = '' OR outcome = $9)
${inOrder} LIMIT $10`

const ofAccount = 'account = $1 AND'
// A parameter that a statement does not use has no type.
const ofAll = "$1 = '' AND"
const statements = {
  account: { rangeEnd: rangeEnd(ofAccount), list: list(ofAccount) },
  all: { rangeEnd: rangeEnd(ofAll), list: list(ofAll) },
}

// Index events_of_account or the primary key of events, backwards.
const ofEvents = (account: string) => `FROM events e WHERE ${account} e.id < $2`
const eventRangeEnd = (account: string) =>
  `SELECT e.id, e.happened_at ${ofEvents(account)} ORDER BY e.id DESC LIMIT 1 OFFSET $3`
const listEvents = (account: string) => `
SELECT e.id, (SELECT a.name FROM accounts a WHERE a.id = e.account_id) AS account, e.happened_at, e.actor, e.credential,
  NULL AS key_name, e.address, e.type AS action,
  CASE WHEN e.tag IS NULL THEN e.repository || '@' || e.digest ELSE e.repository || ':' || e.tag END AS target,
  e.repository, 'done' AS outcome, NULL AS reason, 1 AS times
${ofEvents(account)} AND e.id >= $3 AND e.happened_at >= $4 AND e.happened_at < $5
  AND ($6 = '' OR e.actor = $6) AND ($7 = '' OR e.type = $7) AND ($8 = '' OR e.repository = $8)
ORDER BY e.id DESC LIMIT $9`

const eventsOfAccount = 'e.account_id = $1 AND'
const eventsOfAll = '$1 = 0 AND'
const eventStatements = {
  account: { rangeEnd: eventRangeEnd(eventsOfAccount), list: listEvents(eventsOfAccount) },
  all: { rangeEnd: eventRangeEnd(eventsOfAll), list: listEvents(eventsOfAll) },
}

/** By how much the time of an event can be behind the time of an event with a smaller position: the duration of a transaction. */
const disorderMs = 600_000

// Index audit_by_time, in its order.
const removeOld = `
DELETE FROM audit WHERE id IN (
  SELECT old.id FROM audit old WHERE old.happened_at <= {now} - $1 ORDER BY old.happened_at, old.id LIMIT $2)`

/** After every entry. */
const theEnd: AuditPosition = { happenedAt: Number.MAX_SAFE_INTEGER, id: Number.MAX_SAFE_INTEGER }

export class SqlAudit implements Audit {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async add(entries: readonly NewAuditEntry[]): Promise<void> {
    if (entries.length > 0) await this.#queries.run(add, [JSON.stringify(entries)])
  }

  async list(
    account: string | undefined,
    filter: AuditFilter,
    before: AuditPosition = theEnd,
    { limit, lookAt }: { readonly limit: number; readonly lookAt: number },
  ): Promise<AuditBatch> {
    const { rangeEnd, list } = account === undefined ? statements.all : statements.account
    const until = { happenedAt: filter.until ?? theEnd.happenedAt, id: 0 }
    const from = before.happenedAt < until.happenedAt ? before : until
    const start: readonly Value[] = [account ?? '', from.happenedAt, from.id]
    const values = [...start, filter.since ?? 0, 0, lookAt - 1]
    const last = await this.#queries.first<{ happened_at: number; id: number }>(rangeEnd, values)
    const { actor = '', action = '', repository = '', outcome = '' } = filter
    const rows = await this.#queries.all<AuditRow>(list, [
      ...start,
      ...(last === undefined ? [filter.since ?? 0, 0] : [last.happened_at, last.id]),
      actor,
      action,
      repository,
      outcome,
      limit,
    ])
    const entries = rows.map(toEntry)
    const end = last && { happenedAt: last.happened_at, id: last.id }
    return { entries, next: rows.length < limit ? end : entries.at(-1) }
  }

  async listEvents(
    accountId: RowId | undefined,
    filter: AuditFilter,
    before: RowId | undefined,
    { limit, lookAt }: { readonly limit: number; readonly lookAt: number },
  ): Promise<AuditBatch> {
    const { rangeEnd, list } = accountId === undefined ? eventStatements.all : eventStatements.account
    const { since = 0, until = theEnd.happenedAt, actor = '', action = '', repository = '' } = filter
    const from = before ?? (await this.#findEventAfter(rangeEnd, accountId, until + disorderMs))
    const start = [accountId ?? 0, from]
    const last = await this.#findEvent(rangeEnd, [...start, lookAt - 1])
    const values = [...start, last?.id ?? 0, since, until, actor, action, repository, limit]
    const rows = await this.#queries.all<AuditRow>(list, values)
    const entries = rows.map(toEntry)
    if (rows.length === limit) return { entries, next: entries.at(-1) }
    const isOver = last === undefined || last.happened_at < since - disorderMs
    return { entries, next: isOver ? undefined : { happenedAt: last.happened_at, id: last.id } }
  }

  /** A position after all events that happened before `time`, found by halving: there is no index by time. */
  async #findEventAfter(rangeEnd: string, accountId: RowId | undefined, time: number): Promise<RowId> {
    let above = theEnd.id
    let newest = await this.#findEvent(rangeEnd, [accountId ?? 0, above, 0])
    if (newest === undefined || newest.happened_at < time) return above
    above = newest.id
    for (let below = 0; below + 1 < above; ) {
      const middle = Math.floor((below + above) / 2)
      newest = await this.#findEvent(rangeEnd, [accountId ?? 0, middle + 1, 0])
      if (newest === undefined || newest.happened_at < time) below = middle
      else above = newest.id
    }
    return above
  }

  #findEvent(rangeEnd: string, values: readonly Value[]) {
    return this.#queries.first<{ id: number; happened_at: number }>(rangeEnd, values)
  }

  removeOld(keepMs: number, limit: number): Promise<number> {
    return this.#queries.run(removeOld, [keepMs, limit])
  }
}

function toEntry(row: AuditRow): AuditEntry {
  return {
    id: row.id,
    account: row.account ?? undefined,
    happenedAt: row.happened_at,
    actor: row.actor ?? undefined,
    credential: row.credential ?? undefined,
    keyName: row.key_name ?? undefined,
    address: row.address ?? undefined,
    action: row.action,
    target: row.target ?? undefined,
    repository: row.repository ?? undefined,
    outcome: row.outcome as AuditOutcome,
    reason: row.reason ?? undefined,
    count: row.times,
  }
}
