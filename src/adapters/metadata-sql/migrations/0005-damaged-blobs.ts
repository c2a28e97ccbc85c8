/**
 * When it was found that the bytes of a blob are missing or have another size. Older servers ignore the column and treat the
 * blob as present.
 */
export const damagedBlobs = `
ALTER TABLE blobs ADD COLUMN damaged_at {number};
`
