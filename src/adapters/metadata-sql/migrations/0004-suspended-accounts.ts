/**
 * The operator can suspend an account. `resume_state` is set while the account is suspended: it is the state that returns
 * when the suspension is lifted. `state` is `disabled` meanwhile, so that an older server refuses the account too; the
 * CHECK stops an older server from enabling it.
 */
export const suspendedAccounts = `
ALTER TABLE accounts ADD COLUMN resume_state {text}
  CHECK (resume_state IS NULL OR (resume_state IN ('enabled', 'disabled') AND state = 'disabled'));
`
