/**
 * The audit log; see the port `Audit`. The account is a name and no foreign key: an entry can belong to an account that has
 * no row yet, or to none.
 */
export const audit = `
CREATE TABLE audit (
  id {id}, account {text}, happened_at {number} NOT NULL, actor {text}, credential {text}, key_name {text}, address {text},
  action {text} NOT NULL, target {text}, repository {text}, outcome {text} NOT NULL, reason {text}, times {number} NOT NULL
) {table};
CREATE INDEX audit_of_account ON audit (account, happened_at, id);
CREATE INDEX audit_by_time ON audit (happened_at, id);
`
