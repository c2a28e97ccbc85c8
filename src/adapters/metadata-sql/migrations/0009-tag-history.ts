/**
 * The moves of tags. `previous_manifest_id` is the manifest that the tag had before its last push, because an upsert can return
 * only what it has stored. It is no foreign key: that manifest may be deleted later. The history of a repository is removed
 * with it, also by older servers, which do not know the table.
 */
export const tagHistory = `
ALTER TABLE tags ADD COLUMN previous_manifest_id {number};
ALTER TABLE tags ADD COLUMN updated_by {text};
CREATE TABLE tag_history (
  id {id}, account_id {number} NOT NULL, repository_id {number} NOT NULL, tag {text} NOT NULL,
  from_digest {text}, to_digest {text}, moved_at {number} NOT NULL, moved_by {text} NOT NULL, cause {text} NOT NULL,
  CHECK (from_digest IS NOT NULL OR to_digest IS NOT NULL),
  FOREIGN KEY (account_id, repository_id) REFERENCES repositories (account_id, id) ON DELETE CASCADE
) {table};
CREATE INDEX tag_history_of_tag ON tag_history (account_id, repository_id, tag, moved_at, id);
CREATE INDEX tag_history_by_age ON tag_history (moved_at, id);
`
