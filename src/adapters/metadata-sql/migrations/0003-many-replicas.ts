/**
 * State that several servers share: the hash of an upload so far, which objects a server is removing, when a job is due, and the
 * keys that sign tokens. The new index on blob_links covers the whole key; it is created first and the old one is dropped last,
 * so that readers wait for the drop only. `oldest_code` says which older servers can work beside a newer one.
 *
 * The table `turns` says when periodic work is due next (`Garbage.claimWork`). It has nothing to do with the turn of an
 * upload.
 */
export const manyReplicas = `
CREATE INDEX blob_links_by_blob ON blob_links (account_id, blob_id, repository_id);
ALTER TABLE uploads ADD COLUMN received_digest {text};
ALTER TABLE uploads ADD COLUMN digested_bytes {number};
ALTER TABLE trash ADD COLUMN taken_until {number} NOT NULL DEFAULT 0;
CREATE TABLE turns (work {text} PRIMARY KEY, due_at {number} NOT NULL) {table};
CREATE TABLE signing_keys (kid {text} PRIMARY KEY, created_at {number} NOT NULL, private_jwk {text} NOT NULL) {table};
CREATE TABLE marks (name {text} PRIMARY KEY, value {text} NOT NULL) {table};
CREATE TABLE copied_objects (
  source_key {text} PRIMARY KEY, storage_key {text} NOT NULL UNIQUE, digest {text} NOT NULL, size_bytes {number} NOT NULL
) {table};
CREATE INDEX uploads_done_by_age ON uploads (touched_at) WHERE done_digest IS NOT NULL;
CREATE INDEX uploads_open_by_touch ON uploads (touched_at) WHERE done_digest IS NULL;
CREATE INDEX uploads_open_by_age ON uploads (created_at) WHERE done_digest IS NULL;
ALTER TABLE schema_versions ADD COLUMN oldest_code {number} NOT NULL DEFAULT 0;
DROP INDEX uploads_by_age;
DROP INDEX blob_links_of_blob;
`
