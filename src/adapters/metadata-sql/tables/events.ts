import type { Digest } from '../../../oci/digest.ts'
import type { RepositoryName, Tag } from '../../../oci/names.ts'
import type { Events, EventType, NewEvent, RegistryEvent } from '../../../ports/events.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'

interface EventRow {
  readonly id: number
  readonly account_id: number
  readonly type: string
  readonly repository: string | null
  readonly tag: string | null
  readonly digest: string | null
  readonly previous_digest: string | null
  readonly happened_at: number
  readonly actor: string
  readonly credential: string | null
  readonly address: string | null
  readonly cause: string | null
  readonly data: string | null
}

const columns =
  'account_id, type, repository, tag, digest, previous_digest, happened_at, actor, credential, address, cause, data'

// The primary key of repositories.
const add = `
INSERT INTO {outbox} (${columns})
VALUES ($1, $2, (SELECT name FROM repositories WHERE account_id = $1 AND id = $3), $4, $5, $6, {now}, $7, $8, $9, $10, $11)`

// The primary keys of repositories and manifests. While the transaction holds the row of the tag, no other one can remove its
// manifests.
const digestOf = (id: string) => `(SELECT digest FROM manifests WHERE account_id = $1 AND id = ${id})`
export const addTagMove = `
INSERT INTO {outbox} (account_id, type, repository, tag, digest, previous_digest, happened_at, actor, credential, address, cause)
VALUES ($1, $2, (SELECT name FROM repositories WHERE account_id = $1 AND id = $3), $4, ${digestOf('$5')}, ${digestOf('$6')},
  {now}, $7, $8, $9, $10)`

export const addTagRemovals = `
INSERT INTO {outbox} (account_id, type, repository, tag, previous_digest, happened_at, actor, credential, address, cause)
SELECT $1, 'tag.deleted', (SELECT name FROM repositories WHERE account_id = $1 AND id = $2), each.value, ${digestOf('$4')},
  {now}, $5, $6, $7, $8
FROM {each text $3}`

const listUnnumbered = 'SELECT id FROM event_queue ORDER BY id LIMIT $1'

// In the order of the ids in the queue. A transaction that waited for another one has the larger id.
const moveNumbered = `
INSERT INTO events (${columns})
SELECT ${columns} FROM event_queue q WHERE q.id IN (SELECT CAST(each.value AS {number}) FROM {each text $1}) ORDER BY q.id`

const removeNumbered = `
DELETE FROM event_queue WHERE id IN (SELECT CAST(each.value AS {number}) FROM {each text $1})`

// Index events_of_account, in its order or backwards.
const listBefore = `SELECT id, ${columns} FROM events WHERE account_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`
const listAfter = `SELECT id, ${columns} FROM events WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3`

// The primary key, in its order.
const listAllAfter = `SELECT id, ${columns} FROM events WHERE id > $1 ORDER BY id LIMIT $2`
// Never the last event that was passed on, so that ids continue behind it in a copy of the table.
const removeOld = `
DELETE FROM events WHERE happened_at <= {now} - $1 AND id IN (
  SELECT e.id FROM events e WHERE e.id < (SELECT passed FROM event_feed WHERE id = 1) ORDER BY e.id LIMIT $2)`

const findPassed = 'SELECT f.passed FROM event_feed f WHERE f.id = 1'
const lockPassed = `${findPassed} {for update f}`

export class SqlEvents implements Events {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async add(accountId: RowId, event: NewEvent): Promise<void> {
    const { subject, fingerprint, address } = event.actor
    await this.#queries.run(add, [
      accountId,
      event.type,
      event.repositoryId ?? null,
      event.tag ?? null,
      event.digest ?? null,
      event.previousDigest ?? null,
      subject,
      fingerprint ?? null,
      address ?? null,
      event.cause ?? null,
      event.data === undefined ? null : JSON.stringify(event.data),
    ])
  }

  async hasUnnumbered(): Promise<boolean> {
    return (await this.#queries.first(listUnnumbered, [1])) !== undefined
  }

  async number(limit: number): Promise<number> {
    await this.lockPassed()
    const rows = await this.#queries.all<{ id: number }>(listUnnumbered, [limit])
    if (rows.length === 0) return 0
    // Exactly these rows: another transaction may commit smaller ids between two statements.
    const ids = [JSON.stringify(rows.map(({ id }) => String(id)))]
    await this.#queries.run(moveNumbered, ids)
    await this.#queries.run(removeNumbered, ids)
    return rows.length
  }

  async listBefore(accountId: RowId, before = Number.MAX_SAFE_INTEGER, limit: number): Promise<RegistryEvent[]> {
    const rows = await this.#queries.all<EventRow>(listBefore, [accountId, before, limit])
    return rows.map(toEvent)
  }

  async listAfter(accountId: RowId, after: number, limit: number): Promise<RegistryEvent[]> {
    const rows = await this.#queries.all<EventRow>(listAfter, [accountId, after, limit])
    return rows.map(toEvent)
  }

  async listAllAfter(after: number, limit: number): Promise<RegistryEvent[]> {
    const rows = await this.#queries.all<EventRow>(listAllAfter, [after, limit])
    return rows.map(toEvent)
  }

  async findPassed(): Promise<number> {
    return (await this.#queries.first<{ passed: number }>(findPassed, []))?.passed ?? 0
  }

  async lockPassed(): Promise<number> {
    await this.#queries.run('INSERT INTO event_feed (id, passed) VALUES (1, 0) ON CONFLICT (id) DO NOTHING', [])
    return (await this.#queries.first<{ passed: number }>(lockPassed, []))?.passed ?? 0
  }

  async setPassed(position: number): Promise<void> {
    await this.#queries.run('UPDATE event_feed SET passed = $1 WHERE id = 1', [position])
  }

  async removeOld(keepMs: number, limit: number): Promise<number> {
    return this.#queries.run(removeOld, [keepMs, limit])
  }
}

function toEvent(row: EventRow): RegistryEvent {
  return {
    position: row.id,
    accountId: row.account_id,
    type: row.type as EventType,
    repository: (row.repository ?? undefined) as RepositoryName | undefined,
    tag: (row.tag ?? undefined) as Tag | undefined,
    digest: (row.digest ?? undefined) as Digest | undefined,
    previousDigest: (row.previous_digest ?? undefined) as Digest | undefined,
    at: row.happened_at,
    actor: { subject: row.actor, fingerprint: row.credential ?? undefined, address: row.address ?? undefined },
    cause: row.cause ?? undefined,
    data: row.data === null ? undefined : JSON.parse(row.data),
  }
}
