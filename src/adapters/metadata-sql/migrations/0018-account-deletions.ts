/**
 * An account with `deleting_since` is being deleted. The CHECK keeps older servers from ending the suspension of such an
 * account.
 */
export const accountDeletions = `
ALTER TABLE accounts ADD COLUMN deleting_since {number} CHECK (deleting_since IS NULL OR resume_state IS NOT NULL);
CREATE INDEX accounts_being_deleted ON accounts (id) WHERE deleting_since IS NOT NULL;
`
