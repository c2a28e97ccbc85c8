/**
 * Usage of repositories and accounts; see the port `Usage`. Every transaction appends what it changes to `usage_changes`, and a
 * job adds these rows to the two tables of sums. So no push waits for a row of its repository or account.
 *
 * `is_image` was the number of manifests; any value above 0 means that the repository has a manifest. `blobs.owner_id` is the
 * only repository that links the blob, 0 if there are several or none, and NULL as long as the blob is not in the sums.
 * `usage_changes` has no foreign key: rows of a removed repository or account are dropped when they are added up.
 * The mark `usage` makes the job count what exists already.
 *
 * Older servers do not append changes. They cannot work with this schema, so that the sums stay exact.
 */
export const usage = `
ALTER TABLE repositories RENAME COLUMN manifest_count TO is_image;
ALTER TABLE blobs ADD COLUMN owner_id {number};
CREATE TABLE repository_usage (
  account_id {number} NOT NULL, repository_id {number} NOT NULL, manifests {number} NOT NULL, tags {number} NOT NULL,
  bytes {number} NOT NULL, manifest_bytes {number} NOT NULL, owned_bytes {number} NOT NULL,
  pushed_at {number} NOT NULL, recounts {number} NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, repository_id),
  FOREIGN KEY (account_id, repository_id) REFERENCES repositories (account_id, id) ON DELETE CASCADE
) {table};
CREATE INDEX repository_usage_by_size ON repository_usage (account_id, bytes, repository_id);
CREATE INDEX repository_usage_by_push ON repository_usage (account_id, pushed_at, repository_id);
CREATE TABLE account_usage (
  account_id {number} PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
  images {number} NOT NULL, manifests {number} NOT NULL, tags {number} NOT NULL,
  bytes {number} NOT NULL, stored_bytes {number} NOT NULL
) {table};
CREATE TABLE usage_changes (
  id {id}, account_id {number} NOT NULL, repository_id {number} NOT NULL,
  blob_id {number} NOT NULL, images {number} NOT NULL, manifests {number} NOT NULL, tags {number} NOT NULL,
  bytes {number} NOT NULL, manifest_bytes {number} NOT NULL, owned_bytes {number} NOT NULL, stored_bytes {number} NOT NULL,
  pushed_at {number} NOT NULL
) {table};
CREATE INDEX usage_changes_of_repository ON usage_changes (account_id, repository_id);
INSERT INTO account_usage (account_id, images, manifests, tags, bytes, stored_bytes)
SELECT id, image_count, 0, 0, 0, 0 FROM accounts;
ALTER TABLE accounts DROP COLUMN image_count;
INSERT INTO marks (name, value) VALUES ('usage', 'blobs 0')
`
