/**
 * Policies of accounts. The two columns of accounts tell each push and each collection, which read the account anyway, what
 * the policies say. Servers of the previous version do not obey policies.
 */
export const policies = `
ALTER TABLE accounts ADD COLUMN has_immutable_tags {number} NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN untagged_ms {number};
CREATE TABLE policies (
  kind {text} NOT NULL, account_id {number} NOT NULL REFERENCES accounts (id), body {text} NOT NULL,
  changed_at {number} NOT NULL, changed_by {text} NOT NULL,
  PRIMARY KEY (account_id, kind)
) {table};
CREATE INDEX policies_by_kind ON policies (kind, account_id);
`
