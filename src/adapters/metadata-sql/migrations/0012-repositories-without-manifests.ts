/** The collector reads only repositories that may be empty, however many others there are. */
export const repositoriesWithoutManifests = `
CREATE INDEX repositories_without_manifests ON repositories (account_id, id) WHERE manifest_count = 0;
`
