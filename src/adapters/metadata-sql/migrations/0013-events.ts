const columns = `account_id {number} NOT NULL, type {text} NOT NULL, repository {text}, tag {text},
  digest {text}, previous_digest {text}, happened_at {number} NOT NULL, actor {text} NOT NULL, credential {text},
  address {text}, cause {text}, data {text}`

/**
 * The outbox; see the port `Events`. An id of `events` is the position of the event. SQLite has one writer at a time, so the
 * ids are in the order of the commits. With PostgreSQL, changes write to `event_queue`, and one transaction at a time moves
 * committed rows to `events`. The one row of `event_feed` is the lock for that. `{outbox}` is the table for new rows.
 * Repositories are named and not referred to, because events outlive them.
 */
export const events = `
CREATE TABLE events (id {id}, ${columns}) {table};
CREATE INDEX events_of_account ON events (account_id, id);
CREATE TABLE event_queue (id {id}, ${columns}) {table};
CREATE TABLE event_feed (id {number} PRIMARY KEY, passed {number} NOT NULL) {table};
`
