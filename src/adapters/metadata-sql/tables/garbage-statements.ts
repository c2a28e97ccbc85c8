/** The collector's statements. `blob_queue` names each blob that lost a user or got a lease, and since when. */

const isUsedOrLeased = `
  EXISTS (SELECT 1 FROM manifest_entries e WHERE e.account_id = b.account_id AND e.blob_id = b.id)
  OR EXISTS (SELECT 1 FROM blob_links l
             WHERE l.account_id = b.account_id AND l.blob_id = b.id AND l.leased_at > {now} - $LEASE)`

// Whatever the account's state: what is read is one row, however many others stand before it that nobody may collect now.
export const lockNextDue = `
SELECT q.account_id, q.blob_id, q.queued_at, b.storage_key, b.size_bytes, a.state,
  (SELECT count(*) FROM (SELECT 1 AS one FROM blob_links l
                         WHERE l.account_id = q.account_id AND l.blob_id = q.blob_id LIMIT $3 + 1) AS few) AS links
FROM blob_queue q
JOIN blobs b ON b.account_id = q.account_id AND b.id = q.blob_id
JOIN accounts a ON a.id = q.account_id
WHERE q.queued_at >= $2 AND q.queued_at <= {now} - $1
ORDER BY q.queued_at LIMIT 1 {lock q, b skip}`

/** The same one again, if it is still as it was and nobody is using it. */
export const lockDue = `
SELECT 1 AS found FROM blob_queue q
JOIN blobs b ON b.account_id = q.account_id AND b.id = q.blob_id
WHERE q.account_id = $1 AND q.blob_id = $2 AND q.queued_at = $3 {lock q, b skip}`

/** To the end of the queue. */
export const putOff = `
UPDATE blob_queue SET queued_at = {now} WHERE account_id = $1 AND blob_id = $2 AND queued_at = $3 RETURNING queued_at`

export const findUse = `
SELECT 1 AS found FROM blobs b
WHERE b.account_id = $1 AND b.id = $2 AND (${isUsedOrLeased.replace('$LEASE', '$3')})`

// Not by NOT EXISTS: PostgreSQL would make a join of it, whose generic plan reads all entries of the blob for each of its
// links. A base layer has thousands of both.
const isUnused = `leased_at <= {now} - $3
  AND (SELECT 1 FROM manifest_entries e
       WHERE e.account_id = $1 AND e.blob_id = $2 AND e.repository_id = l.repository_id LIMIT 1) IS NULL`

/** The next links of the blob, in the order of the index that leads to them. */
export const listLinks = `
SELECT l.repository_id, CASE WHEN ${isUnused} THEN 1 ELSE 0 END AS is_unused
FROM blob_links l WHERE l.account_id = $1 AND l.blob_id = $2 AND l.repository_id > $4
ORDER BY l.repository_id LIMIT $5`

// The ends of the range beside the list: it is they that are looked up, whatever the engine thinks of the list.
const areThese = `l.account_id = $1 AND l.blob_id = $2 AND l.repository_id >= $4 AND l.repository_id <= $5
  AND l.repository_id IN (SELECT CAST(each.value AS {number}) FROM {texts $6})`

/** One that a push holds is about to be used: it is passed over. */
export const lockUnusedLinks = `
SELECT l.repository_id FROM blob_links l WHERE ${areThese} AND ${isUnused}
ORDER BY l.repository_id {lock l skip}`

/** A look of its own after the lock: what was committed before it is seen here. */
export const dropUnusedLinks = `DELETE FROM blob_links AS l WHERE ${areThese} AND ${isUnused}`

export const dequeueUsed = `
DELETE FROM blob_queue WHERE account_id = $1 AND blob_id = $2
  AND EXISTS (SELECT 1 FROM manifest_entries e WHERE e.account_id = $1 AND e.blob_id = $2)`

export const requeue = 'UPDATE blob_queue SET queued_at = {now} WHERE account_id = $1 AND blob_id = $2'

// A session whose writer still has its turn is alive, however old it is. Each of the three has an index of its own.
const lockExpired = (condition: string, age: string) => `
SELECT u.account_id, u.id, u.storage_key, u.notes FROM uploads u JOIN accounts a ON a.id = u.account_id
WHERE ${condition} AND ${age} <= {now} - $1 AND u.turn_until <= {now} AND a.state = 'enabled'
ORDER BY ${age} LIMIT $2 {lock u skip}`

export const lockIdleUploads = lockExpired('u.done_digest IS NULL', 'u.touched_at')
export const lockOldUploads = lockExpired('u.done_digest IS NULL', 'u.created_at')
export const lockDoneUploads = lockExpired('u.done_digest IS NOT NULL', 'u.touched_at')

export const removeUpload = 'DELETE FROM uploads WHERE account_id = $1 AND id = $2'

/** Of the keys that are $1, those that a blob has, or will have once a move to this store is complete, or the trash. */
export const findNamed = `
SELECT each.value AS storage_key FROM {texts $1}
WHERE EXISTS (SELECT 1 FROM blobs b WHERE b.storage_key >= each.value AND b.storage_key < each.value || '~')
   OR EXISTS (SELECT 1 FROM copied_objects c WHERE c.storage_key = each.value)
   OR EXISTS (SELECT 1 FROM trash t WHERE t.storage_key = each.value)`

export const findUnfinished = 'SELECT storage_key FROM uploads WHERE storage_key {any $1}'

export const takePurgeable = `
UPDATE trash SET taken_until = {now} + $2 WHERE storage_key IN (
  SELECT t.storage_key FROM trash t WHERE t.trashed_at <= {now} - $1 AND t.taken_until <= {now}
  ORDER BY t.trashed_at LIMIT $3 {lock t skip})
RETURNING storage_key, notes, trashed_at`

export const takeTurn = `
INSERT INTO turns (work, due_at) VALUES ($1, {now} + $2)
ON CONFLICT (work) DO UPDATE SET due_at = {now} + $2 WHERE turns.due_at <= {now}`

/** How many repositories one look reads. A number in the text: of a parameter the planner thinks a tenth of the table. */
export const repositoriesAtOnce = 500

const repositoriesWhere = (condition: string) => `
SELECT r.account_id, r.id, CASE WHEN r.manifest_count = 0 AND r.created_at <= {now} - $1 THEN 1 ELSE 0 END AS may_be_empty
FROM repositories r WHERE ${condition} ORDER BY r.account_id, r.id LIMIT ${repositoriesAtOnce}`

/**
 * The repositories after the one that is `$2` and `$3`, in the order of the key that begins with the account. A repository that
 * is counted to have manifests is not empty. First the rest of the account, then the accounts after it: of `(account_id, id) >
 * ($2, $3)`, SQLite uses the account alone and reads the account from its beginning.
 */
export const listNextRepositories = `
SELECT account_id, id, may_be_empty FROM (${repositoriesWhere('r.account_id = $2 AND r.id > $3')}) AS same_account
UNION ALL
SELECT account_id, id, may_be_empty FROM (${repositoriesWhere('r.account_id > $2')}) AS later_accounts
ORDER BY account_id, id LIMIT ${repositoriesAtOnce}`

const holdsNothing = `r.id IN (SELECT CAST(each.value AS {number}) FROM {texts $1}) AND r.manifest_count = 0
  AND NOT EXISTS (SELECT 1 FROM blob_links l WHERE l.account_id = r.account_id AND l.repository_id = r.id)
  AND NOT EXISTS (SELECT 1 FROM uploads u WHERE u.account_id = r.account_id AND u.repository_id = r.id)`

/** A push holds its repository: that one is passed over. */
export const lockEmptyRepositories = `
SELECT r.id FROM repositories r
WHERE (SELECT a.state FROM accounts a WHERE a.id = r.account_id) = 'enabled' AND ${holdsNothing} {lock r skip}`

/** A look of its own after the lock: what was committed before it is seen here. */
export const removeEmptyRepositories = `DELETE FROM repositories AS r WHERE ${holdsNothing}`

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
