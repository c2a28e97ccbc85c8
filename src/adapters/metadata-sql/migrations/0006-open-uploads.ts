/**
 * An index for counting the open uploads of a repository without reading the finished ones. It begins with the columns of the old
 * index, because the foreign key to repositories needs them. A partial index beside the old one would not help: SQLite, which has
 * no statistics here, would use the old one.
 */
export const openUploads = `
CREATE INDEX uploads_by_repository ON uploads (account_id, repository_id, done_digest);
DROP INDEX uploads_of_repository;
`
