/**
 * Every foreign key between tables of content contains the account, so that no row can refer to a row of another
 * account. `MetadataStore` states the invariants of this schema.
 */
export const initial = `
CREATE TABLE accounts (
  id {id}, name {text} NOT NULL UNIQUE, state {text} NOT NULL CHECK (state IN ('enabled', 'disabled')),
  image_count {number} NOT NULL DEFAULT 0 CHECK (image_count >= 0),
  created_at {number} NOT NULL, changed_at {number} NOT NULL
) {table};

CREATE TABLE repositories (
  id {id}, account_id {number} NOT NULL REFERENCES accounts (id) ON DELETE RESTRICT, name {text} NOT NULL,
  manifest_count {number} NOT NULL DEFAULT 0 CHECK (manifest_count >= 0), created_at {number} NOT NULL,
  UNIQUE (account_id, name), UNIQUE (account_id, id)
) {table};

CREATE TABLE blobs (
  id {id}, account_id {number} NOT NULL REFERENCES accounts (id) ON DELETE RESTRICT,
  digest {text} NOT NULL, size_bytes {number} NOT NULL CHECK (size_bytes >= 0),
  storage_key {text} NOT NULL UNIQUE, created_at {number} NOT NULL,
  UNIQUE (account_id, digest), UNIQUE (account_id, id)
) {table};

CREATE TABLE blob_links (
  account_id {number} NOT NULL, repository_id {number} NOT NULL, blob_id {number} NOT NULL, leased_at {number} NOT NULL,
  PRIMARY KEY (account_id, repository_id, blob_id),
  FOREIGN KEY (account_id, repository_id) REFERENCES repositories (account_id, id) ON DELETE RESTRICT,
  FOREIGN KEY (account_id, blob_id) REFERENCES blobs (account_id, id) ON DELETE RESTRICT
) {table};
CREATE INDEX blob_links_of_blob ON blob_links (account_id, blob_id);

CREATE TABLE blob_queue (
  account_id {number} NOT NULL, blob_id {number} NOT NULL, queued_at {number} NOT NULL,
  PRIMARY KEY (account_id, blob_id),
  FOREIGN KEY (account_id, blob_id) REFERENCES blobs (account_id, id) ON DELETE CASCADE
) {table};
CREATE INDEX blob_queue_by_age ON blob_queue (queued_at);

CREATE TABLE manifests (
  id {id}, account_id {number} NOT NULL, repository_id {number} NOT NULL,
  digest {text} NOT NULL, media_type {text} NOT NULL, size_bytes {number} NOT NULL,
  subject_digest {text}, artifact_type {text}, annotations {text}, pushed_at {number} NOT NULL,
  payload {bytes} NOT NULL,
  UNIQUE (account_id, repository_id, digest), UNIQUE (account_id, id),
  FOREIGN KEY (account_id, repository_id) REFERENCES repositories (account_id, id) ON DELETE RESTRICT
) {table};
CREATE INDEX manifests_by_subject ON manifests (account_id, repository_id, subject_digest, digest)
  WHERE subject_digest IS NOT NULL;

CREATE TABLE manifest_entries (
  account_id {number} NOT NULL, repository_id {number} NOT NULL, manifest_id {number} NOT NULL, digest {text} NOT NULL,
  blob_id {number}, child_id {number}, CHECK (blob_id IS NULL OR child_id IS NULL),
  PRIMARY KEY (account_id, manifest_id, digest),
  FOREIGN KEY (account_id, manifest_id) REFERENCES manifests (account_id, id) ON DELETE CASCADE,
  FOREIGN KEY (account_id, repository_id, blob_id) REFERENCES blob_links (account_id, repository_id, blob_id)
    ON DELETE RESTRICT,
  FOREIGN KEY (account_id, child_id) REFERENCES manifests (account_id, id) ON DELETE RESTRICT
) {table};
CREATE INDEX manifest_entries_of_blob ON manifest_entries (account_id, blob_id, repository_id) WHERE blob_id IS NOT NULL;
CREATE INDEX manifest_entries_of_link ON manifest_entries (account_id, repository_id, blob_id);
CREATE INDEX manifest_entries_of_child ON manifest_entries (account_id, child_id);
CREATE INDEX manifest_entries_waiting ON manifest_entries (account_id, repository_id, digest)
  WHERE blob_id IS NULL AND child_id IS NULL;

CREATE TABLE tags (
  account_id {number} NOT NULL, repository_id {number} NOT NULL, name {text} NOT NULL, manifest_id {number} NOT NULL,
  version {number} NOT NULL DEFAULT 1, updated_at {number} NOT NULL,
  PRIMARY KEY (account_id, repository_id, name),
  FOREIGN KEY (account_id, repository_id) REFERENCES repositories (account_id, id) ON DELETE RESTRICT,
  FOREIGN KEY (account_id, manifest_id) REFERENCES manifests (account_id, id) ON DELETE RESTRICT
) {table};
CREATE INDEX tags_of_manifest ON tags (account_id, manifest_id);

CREATE TABLE uploads (
  account_id {number} NOT NULL, id {text} NOT NULL, repository_id {number} NOT NULL, subject {text} NOT NULL,
  storage_key {text} UNIQUE, received_bytes {number} NOT NULL DEFAULT 0, notes {text},
  epoch {number} NOT NULL DEFAULT 0, turn_until {number} NOT NULL DEFAULT 0, done_digest {text},
  created_at {number} NOT NULL, touched_at {number} NOT NULL,
  PRIMARY KEY (account_id, id), CHECK ((storage_key IS NULL) = (done_digest IS NOT NULL)),
  FOREIGN KEY (account_id, repository_id) REFERENCES repositories (account_id, id) ON DELETE RESTRICT
) {table};
CREATE INDEX uploads_of_repository ON uploads (account_id, repository_id);
CREATE INDEX uploads_by_age ON uploads (touched_at);

CREATE TABLE trash (storage_key {text} PRIMARY KEY, notes {text}, trashed_at {number} NOT NULL) {table};
CREATE INDEX trash_by_age ON trash (trashed_at);

CREATE TABLE users (
  id {id}, name {text} NOT NULL UNIQUE, password_hash {text}, roles {text} NOT NULL, account {text} NOT NULL,
  is_disabled {number} NOT NULL DEFAULT 0, created_at {number} NOT NULL
) {table};

CREATE TABLE api_keys (
  id {id}, user_id {number} NOT NULL REFERENCES users (id) ON DELETE CASCADE, name {text} NOT NULL,
  secret_hash {text} NOT NULL UNIQUE, expires_at {number}, created_at {number} NOT NULL,
  UNIQUE (user_id, name)
) {table};
`
