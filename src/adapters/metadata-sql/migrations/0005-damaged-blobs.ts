/**
 * Since when a blob is known to be damaged: its bytes are missing, or not as many as its row says. Older servers do not know
 * the column: to them the blob is there, as it was before.
 */
export const damagedBlobs = `
ALTER TABLE blobs ADD COLUMN damaged_at {number};
`
