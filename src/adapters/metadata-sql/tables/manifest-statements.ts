/**
 * The longer statements of the manifests' table; those for reading are on the hottest path of the registry. They nest
 * their look-ups instead of joining: each step finds one row by a key, in SQLite in a third of a join's time, and in
 * PostgreSQL by the whole key, whatever the planner believes of large repositories.
 */
const repositoryId = '(SELECT id FROM repositories WHERE account_id = $1 AND name = $2)'

export const findByTag = `
SELECT digest, media_type, size_bytes, payload FROM manifests
WHERE account_id = $1 AND id = (
  SELECT manifest_id FROM tags WHERE account_id = $1 AND repository_id = ${repositoryId} AND name = $3)`

export const findByDigest = `
SELECT digest, media_type, size_bytes, payload FROM manifests
WHERE account_id = $1 AND repository_id = ${repositoryId} AND digest = $3`

export const describeByTag = findByTag.replace(', payload', '')
export const describeByDigest = findByDigest.replace(', payload', '')

const textBytes = '(coalesce(octet_length(artifact_type), 0) + coalesce(octet_length(annotations), 0))'
const ifShort = (column: string) => `CASE WHEN ${textBytes} <= 2048 THEN ${column} END AS ${column}`

/** The engines know the length of a text without reading the text. Long texts are read one by one, with `findTexts`. */
export const referrersOf = `
SELECT id, digest, media_type, size_bytes, ${textBytes} AS text_bytes, ${ifShort('artifact_type')}, ${ifShort('annotations')}
FROM manifests
WHERE account_id = $1 AND repository_id = ${repositoryId} AND subject_digest = $3 AND digest > $4
  AND ($5 = 0 OR artifact_type {any $6})
ORDER BY digest LIMIT $7`

export const findTexts = 'SELECT artifact_type, annotations FROM manifests WHERE account_id = $1 AND id = $2'

export const lockManifests = `
SELECT each.value AS digest, (
  SELECT m.id FROM manifests m
  WHERE m.account_id = $1 AND m.repository_id = $2 AND m.digest = each.value {keep m}) AS id
FROM {texts $3}`

export const saveManifest = `
INSERT INTO manifests (account_id, repository_id, digest, media_type, size_bytes,
                       subject_digest, artifact_type, annotations, payload, pushed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {now})
ON CONFLICT (account_id, repository_id, digest) DO NOTHING
RETURNING id`

export const renameManifest = `
UPDATE manifests SET media_type = $4 WHERE account_id = $1 AND repository_id = $2 AND digest = $3 RETURNING id`

// `WHERE true` lets SQLite tell the upsert's ON from a join's.
export const saveEntries = `
INSERT INTO manifest_entries (account_id, repository_id, manifest_id, digest, blob_id, child_id)
SELECT $1, $2, $3, each.value ->> 'digest',
       CAST(each.value ->> 'blobId' AS bigint), CAST(each.value ->> 'childId' AS bigint)
FROM {each $4}
WHERE true
ON CONFLICT (account_id, manifest_id, digest) DO UPDATE SET blob_id = excluded.blob_id, child_id = excluded.child_id`
