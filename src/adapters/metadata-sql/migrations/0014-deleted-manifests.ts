/**
 * Copies of deleted manifests, so that they can be undeleted; see the port `DeletedManifests`. `tags` is a JSON array of the
 * tags that the deletion removed. The entries keep the blobs: a collector of the previous version, which does not know the
 * table, fails at such a blob and changes nothing.
 */
export const deletedManifests = `
CREATE TABLE deleted_manifests (
  id {id}, account_id {number} NOT NULL, repository_id {number} NOT NULL,
  digest {text} NOT NULL, media_type {text} NOT NULL, size_bytes {number} NOT NULL,
  subject_digest {text}, artifact_type {text}, annotations {text}, payload {bytes} NOT NULL,
  tags {text} NOT NULL, deleted_at {number} NOT NULL, deleted_by {text} NOT NULL, cause {text} NOT NULL,
  UNIQUE (account_id, repository_id, digest), UNIQUE (account_id, id),
  FOREIGN KEY (account_id, repository_id) REFERENCES repositories (account_id, id) ON DELETE RESTRICT
) {table};
CREATE INDEX deleted_manifests_of_repository ON deleted_manifests (account_id, repository_id, deleted_at, id);
CREATE INDEX deleted_manifests_by_age ON deleted_manifests (deleted_at, id);
CREATE TABLE deleted_entries (
  account_id {number} NOT NULL, deleted_id {number} NOT NULL, digest {text} NOT NULL, blob_id {number},
  is_manifest {number} NOT NULL,
  PRIMARY KEY (account_id, deleted_id, digest),
  FOREIGN KEY (account_id, deleted_id) REFERENCES deleted_manifests (account_id, id) ON DELETE CASCADE,
  FOREIGN KEY (account_id, blob_id) REFERENCES blobs (account_id, id) ON DELETE RESTRICT
) {table};
CREATE INDEX deleted_entries_of_blob ON deleted_entries (account_id, blob_id);
`
