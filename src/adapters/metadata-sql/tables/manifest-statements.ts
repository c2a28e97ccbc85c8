/** The longer statements of the manifests' table; those for reading are on the hottest path of the registry. */

export const findByTag = `
SELECT m.digest, m.media_type, m.size_bytes, m.payload
FROM repositories r
JOIN tags t ON t.account_id = r.account_id AND t.repository_id = r.id
JOIN manifests m ON m.account_id = t.account_id AND m.id = t.manifest_id
WHERE r.account_id = $1 AND r.name = $2 AND t.name = $3`

export const findByDigest = `
SELECT m.digest, m.media_type, m.size_bytes, m.payload
FROM repositories r
JOIN manifests m ON m.account_id = r.account_id AND m.repository_id = r.id
WHERE r.account_id = $1 AND r.name = $2 AND m.digest = $3`

export const describeByTag = findByTag.replace(', m.payload', '')
export const describeByDigest = findByDigest.replace(', m.payload', '')

export const referrersOf = `
SELECT m.digest, m.media_type, m.size_bytes, m.artifact_type, m.annotations
FROM repositories r
JOIN manifests m ON m.account_id = r.account_id AND m.repository_id = r.id
WHERE r.account_id = $1 AND r.name = $2 AND m.subject_digest = $3 AND m.digest > $4
  AND ($5 = 0 OR m.artifact_type {any $6})
ORDER BY m.digest LIMIT $7`

export const saveManifest = `
INSERT INTO manifests (account_id, repository_id, digest, media_type, size_bytes,
                       subject_digest, artifact_type, annotations, payload, pushed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {now})
ON CONFLICT (account_id, repository_id, digest) DO UPDATE SET media_type = excluded.media_type
RETURNING id`

// `WHERE true` lets SQLite tell the upsert's ON from a join's.
export const saveEntries = `
INSERT INTO manifest_entries (account_id, repository_id, manifest_id, digest, blob_id, child_id)
SELECT $1, $2, $3, each.value ->> 'digest',
       CAST(each.value ->> 'blobId' AS bigint), CAST(each.value ->> 'childId' AS bigint)
FROM {each $4}
WHERE true
ON CONFLICT (account_id, manifest_id, digest) DO UPDATE SET blob_id = excluded.blob_id, child_id = excluded.child_id`
