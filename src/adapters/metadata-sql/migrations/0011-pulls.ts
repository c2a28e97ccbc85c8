/** When tags, manifests and repositories were last pulled; see the port `Pulls`. Servers of the previous version add no rows. */
export const pulls = `
CREATE TABLE manifest_pulls (
  account_id {number} NOT NULL, manifest_id {number} NOT NULL, pulled_at {number} NOT NULL,
  PRIMARY KEY (account_id, manifest_id),
  FOREIGN KEY (account_id, manifest_id) REFERENCES manifests (account_id, id) ON DELETE CASCADE
) {table};
CREATE TABLE tag_pulls (
  account_id {number} NOT NULL, repository_id {number} NOT NULL, tag {text} NOT NULL, pulled_at {number} NOT NULL,
  PRIMARY KEY (account_id, repository_id, tag),
  FOREIGN KEY (account_id, repository_id, tag) REFERENCES tags (account_id, repository_id, name) ON DELETE CASCADE
) {table};
CREATE TABLE repository_pulls (
  account_id {number} NOT NULL, repository_id {number} NOT NULL, pulled_at {number} NOT NULL,
  PRIMARY KEY (account_id, repository_id),
  FOREIGN KEY (account_id, repository_id) REFERENCES repositories (account_id, id) ON DELETE CASCADE
) {table};
CREATE INDEX repository_pulls_by_time ON repository_pulls (account_id, pulled_at, repository_id);
`
