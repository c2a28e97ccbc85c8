/** The quotas of accounts. NULL: no limit. Servers of the previous version do not check them. */
export const quotas = `
ALTER TABLE accounts ADD COLUMN quota_bytes {number};
ALTER TABLE accounts ADD COLUMN quota_repositories {number};
ALTER TABLE accounts ADD COLUMN quota_tags {number};
`
