/** Limits and time of last use for API keys. `token_epoch` invalidates all tokens of a user at once. */
export const keysWithLimits = `
ALTER TABLE users ADD COLUMN token_epoch {number} NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN rights {text};
ALTER TABLE api_keys ADD COLUMN repositories {text};
ALTER TABLE api_keys ADD COLUMN last_used_at {number};
CREATE INDEX users_of_account ON users (account, name);
`
