/**
 * The statements of the collector. A blob is in `blob_queue` since it last lost a manifest or a link, or got a lease. Each
 * decision to remove something is made in two statements: the first locks the row, the second checks again and sees everything
 * that was committed before the lock.
 */

const isUsedOrLeased = `
  EXISTS (SELECT 1 FROM manifest_entries e WHERE e.account_id = b.account_id AND e.blob_id = b.id)
  OR EXISTS (SELECT 1 FROM deleted_entries d WHERE d.account_id = b.account_id AND d.blob_id = b.id)
  OR EXISTS (SELECT 1 FROM blob_links l
             WHERE l.account_id = b.account_id AND l.blob_id = b.id AND l.leased_at > {now} - $LEASE)`

// Index blob_queue_by_age. It returns blobs of disabled accounts too, so that it reads one row and does not skip many.
export const lockNextDue = `
SELECT q.account_id, q.blob_id, q.queued_at, b.storage_key, b.size_bytes, a.state,
  (SELECT count(*) FROM (SELECT 1 AS one FROM blob_links l
                         WHERE l.account_id = q.account_id AND l.blob_id = q.blob_id LIMIT $3 + 1) AS few) AS links
FROM blob_queue q
JOIN blobs b ON b.account_id = q.account_id AND b.id = q.blob_id
JOIN accounts a ON a.id = q.account_id
WHERE q.queued_at >= $2 AND q.queued_at <= {now} - $1
ORDER BY q.queued_at LIMIT 1 {for update q, b skip locked}`

/** The same blob, if its place in the queue is unchanged and no transaction has locked it. */
export const lockDue = `
SELECT 1 AS found FROM blob_queue q
JOIN blobs b ON b.account_id = q.account_id AND b.id = q.blob_id
WHERE q.account_id = $1 AND q.blob_id = $2 AND q.queued_at = $3 {for update q, b skip locked}`

/** Moves the blob to the end of the queue, if its place is unchanged. */
export const requeue = `
UPDATE blob_queue SET queued_at = {now} WHERE account_id = $1 AND blob_id = $2 AND queued_at = $3 RETURNING queued_at`

export const findUse = `
SELECT 1 AS found FROM blobs b
WHERE b.account_id = $1 AND b.id = $2 AND (${isUsedOrLeased.replace('$LEASE', '$3')})`

// Not NOT EXISTS: PostgreSQL would turn it into a join, whose generic plan reads all entries of the blob for each of its links.
// A base layer has thousands of both. Index manifest_entries_of_link.
const isUnused = `leased_at <= {now} - $3
  AND (SELECT 1 FROM manifest_entries e
       WHERE e.account_id = $1 AND e.blob_id = $2 AND e.repository_id = l.repository_id LIMIT 1) IS NULL`

/** Index blob_links_by_blob, in its order. */
export const listLinks = `
SELECT l.repository_id, CASE WHEN ${isUnused} THEN 1 ELSE 0 END AS is_unused
FROM blob_links l WHERE l.account_id = $1 AND l.blob_id = $2 AND l.repository_id > $4
ORDER BY l.repository_id LIMIT $5`

// The range beside the list limits how much of an index is read, however badly the engine estimates the list.
const areThese = `l.account_id = $1 AND l.blob_id = $2 AND l.repository_id >= $4 AND l.repository_id <= $5
  AND l.repository_id IN (SELECT CAST(each.value AS {number}) FROM {each text $6})`

/** Skips links that a push has locked, because it is about to use them. */
export const lockUnusedLinks = `
SELECT l.repository_id FROM blob_links l WHERE ${areThese} AND ${isUnused}
ORDER BY l.repository_id {for update l skip locked}`

export const removeUnusedLinks = `
DELETE FROM blob_links AS l WHERE ${areThese} AND ${isUnused} RETURNING repository_id`

export const removeLinks = `
DELETE FROM blob_links WHERE account_id = $1 AND blob_id = $2 RETURNING repository_id`

export const dequeueUsed = `
DELETE FROM blob_queue WHERE account_id = $1 AND blob_id = $2
  AND (EXISTS (SELECT 1 FROM manifest_entries e WHERE e.account_id = $1 AND e.blob_id = $2)
    OR EXISTS (SELECT 1 FROM deleted_entries d WHERE d.account_id = $1 AND d.blob_id = $2))`

export const requeueKept = 'UPDATE blob_queue SET queued_at = {now} WHERE account_id = $1 AND blob_id = $2'

export const removeBlob = `
DELETE FROM blobs WHERE account_id = $1 AND id = $2
RETURNING CASE WHEN content IS NULL THEN 1 ELSE 0 END AS is_object, size_bytes, owner_id`

// A session whose writer has the turn is alive, however old it is. Each of the three statements has an index: in order,
// uploads_open_by_touch, uploads_open_by_age and uploads_done_by_age.
const lockExpired = (condition: string, age: string) => `
SELECT u.account_id, u.id, u.storage_key, u.notes, u.turn_until FROM uploads u JOIN accounts a ON a.id = u.account_id
WHERE ${condition} AND ${age} <= {now} - $1 AND u.turn_until <= {now} AND a.state = 'enabled'
ORDER BY ${age} LIMIT $2 {for update u skip locked}`

export const lockIdleUploads = lockExpired('u.done_digest IS NULL', 'u.touched_at')
export const lockOldUploads = lockExpired('u.done_digest IS NULL', 'u.created_at')
export const lockDoneUploads = lockExpired('u.done_digest IS NOT NULL', 'u.touched_at')

export const removeUpload = 'DELETE FROM uploads WHERE account_id = $1 AND id = $2'

/** Those keys of $1 that are in use: by a blob, by a move that is not finished, or in the trash. For the range see trash.ts. */
export const findNamed = `
SELECT each.value AS storage_key FROM {each text $1}
WHERE EXISTS (SELECT 1 FROM blobs b WHERE b.storage_key >= each.value AND b.storage_key < each.value || '~')
   OR EXISTS (SELECT 1 FROM copied_objects c WHERE c.storage_key = each.value)
   OR EXISTS (SELECT 1 FROM trash t WHERE t.storage_key = each.value)`

export const findUnfinished = 'SELECT storage_key FROM uploads WHERE storage_key {in $1}'

/** Index trash_by_age. Reserves the rows until `taken_until`, so that other collectors skip them. */
export const claimTrashed = `
UPDATE trash SET taken_until = {now} + $2 WHERE storage_key IN (
  SELECT t.storage_key FROM trash t WHERE t.trashed_at <= {now} - $1 AND t.taken_until <= {now}
  ORDER BY t.trashed_at LIMIT $3 {for update t skip locked})
RETURNING storage_key, notes, trashed_at`

/** The table `turns` says when periodic work is due next; see `PeriodicWork` in the port. */
export const claimWork = `
INSERT INTO turns (work, due_at) VALUES ($1, {now} + $2)
ON CONFLICT (work) DO UPDATE SET due_at = {now} + $2 WHERE turns.due_at <= {now}`

/** It is a literal in the statement, because for a parameter PostgreSQL plans to read a tenth of the table. */
export const repositoriesAtOnce = 500

const repositoriesWhere = (condition: string) => `
SELECT r.account_id, r.id, CASE WHEN r.created_at <= {now} - $1 THEN 1 ELSE 0 END AS may_be_empty
FROM repositories r WHERE ${condition} AND r.is_image = 0 ORDER BY r.account_id, r.id LIMIT ${repositoriesAtOnce}`

/**
 * The repositories without manifests after the one with the key ($2, $3). Index repositories_without_manifests. First the rest
 * of the same account, then the later accounts: for `(account_id, id) > ($2, $3)` SQLite would read the account from its
 * beginning.
 */
export const listNextRepositories = `
SELECT account_id, id, may_be_empty FROM (${repositoriesWhere('r.account_id = $2 AND r.id > $3')}) AS same_account
UNION ALL
SELECT account_id, id, may_be_empty FROM (${repositoriesWhere('r.account_id > $2')}) AS later_accounts
ORDER BY account_id, id LIMIT ${repositoriesAtOnce}`

const holdsNothing = `r.id IN (SELECT CAST(each.value AS {number}) FROM {each text $1}) AND r.is_image = 0
  AND NOT EXISTS (SELECT 1 FROM blob_links l WHERE l.account_id = r.account_id AND l.repository_id = r.id)
  AND NOT EXISTS (SELECT 1 FROM uploads u WHERE u.account_id = r.account_id AND u.repository_id = r.id)
  AND NOT EXISTS (SELECT 1 FROM tag_history h WHERE h.account_id = r.account_id AND h.repository_id = r.id)
  AND NOT EXISTS (SELECT 1 FROM deleted_manifests d WHERE d.account_id = r.account_id AND d.repository_id = r.id)
  AND NOT EXISTS (SELECT 1 FROM usage_changes c WHERE c.account_id = r.account_id AND c.repository_id = r.id)`

/** Skips repositories that a push has locked. */
export const lockEmptyRepositories = `
SELECT r.id FROM repositories r
WHERE (SELECT a.state FROM accounts a WHERE a.id = r.account_id) = 'enabled' AND ${holdsNothing} {for update r skip locked}`

export const removeEmptyRepositories = `
DELETE FROM repositories AS r WHERE ${holdsNothing}`

// The forecast is a dry run for operators. It reads everything that is due.

export const forecastBlobs = `
SELECT count(*) AS blobs, CAST(coalesce(sum(b.size_bytes), 0) AS bigint) AS bytes
FROM blob_queue q
JOIN blobs b ON b.account_id = q.account_id AND b.id = q.blob_id
JOIN accounts a ON a.id = q.account_id
WHERE q.queued_at <= {now} - $1 AND a.state = 'enabled' AND NOT (${isUsedOrLeased.replace('$LEASE', '$1')})`

export const forecastUploads = `
SELECT count(*) AS uploads FROM uploads u JOIN accounts a ON a.id = u.account_id
WHERE a.state = 'enabled' AND u.done_digest IS NULL AND u.turn_until <= {now}
  AND (u.touched_at <= {now} - $1 OR u.created_at <= {now} - $2)`
