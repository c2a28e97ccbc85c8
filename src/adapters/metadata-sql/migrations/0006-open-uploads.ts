/**
 * Counting the open uploads of a repository must not read the finished ones, which stay for a while after their end. The index
 * begins with the columns of the old one, because the foreign key to repositories needs them. It is not a partial index beside
 * the old one: SQLite, which has no statistics here, would take the old one.
 */
export const openUploads = `
CREATE INDEX uploads_by_repository ON uploads (account_id, repository_id, done_digest);
DROP INDEX uploads_of_repository;
`
