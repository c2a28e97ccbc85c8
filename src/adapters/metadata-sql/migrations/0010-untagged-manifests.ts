/**
 * Candidates for the list of untagged manifests; see the port `Untagged`. Servers of the previous version do not add rows. The
 * time of manifests that are untagged already is unknown, so they begin now.
 */
export const untaggedManifests = `
CREATE TABLE untagged_manifests (
  account_id {number} NOT NULL, manifest_id {number} NOT NULL, repository_id {number} NOT NULL, since {number} NOT NULL,
  was_tagged {number} NOT NULL,
  PRIMARY KEY (account_id, manifest_id),
  FOREIGN KEY (account_id, manifest_id) REFERENCES manifests (account_id, id) ON DELETE CASCADE
) {table};
INSERT INTO untagged_manifests (account_id, manifest_id, repository_id, since, was_tagged)
SELECT m.account_id, m.id, m.repository_id, {now}, 1 FROM manifests m
WHERE NOT EXISTS (SELECT 1 FROM tags t WHERE t.account_id = m.account_id AND t.manifest_id = m.id)
  AND NOT EXISTS (SELECT 1 FROM manifest_entries e WHERE e.account_id = m.account_id AND e.child_id = m.id);
CREATE INDEX untagged_manifests_by_age ON untagged_manifests (since, manifest_id);
CREATE INDEX untagged_manifests_of_repository ON untagged_manifests (account_id, repository_id, since, manifest_id);
`
