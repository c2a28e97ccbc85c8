/**
 * The digest with which the current writer closes an upload. If a client repeats the closing request at another server, that
 * request waits for the writer. An older server neither sets nor clears the column; then the repeated request is refused as busy
 * or waits for nothing.
 */
export const closingUploads = `
ALTER TABLE uploads ADD COLUMN closing_digest {text};
`
