/**
 * `resume_state` is set while the operator has suspended the account: it is the state after the suspension. Meanwhile `state` is
 * `disabled`, so that older servers refuse the account too. The CHECK keeps older servers from enabling it.
 */
export const suspendedAccounts = `
ALTER TABLE accounts ADD COLUMN resume_state {text}
  CHECK (resume_state IS NULL OR (resume_state IN ('enabled', 'disabled') AND state = 'disabled'));
`
