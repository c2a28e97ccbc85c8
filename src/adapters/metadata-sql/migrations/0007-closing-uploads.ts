/**
 * The digest with which the writer that has the turn closes an upload. A request that repeats the closing request on another
 * server waits for that writer. An older server neither sets nor clears it; then the repeated request is refused as busy, or
 * waits once in vain.
 */
export const closingUploads = `
ALTER TABLE uploads ADD COLUMN closing_digest {text};
`
