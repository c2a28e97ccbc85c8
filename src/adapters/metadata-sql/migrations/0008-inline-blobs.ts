/**
 * The bytes of small blobs and of small unfinished uploads. NULL: the bytes are an object in the blob store. The CHECK keeps
 * the bytes of a blob complete, and keeps servers of the previous version, which look for an object, from marking the blob as
 * damaged: they answer 500 to a GET of the blob.
 */
export const inlineBlobs = `
ALTER TABLE blobs ADD COLUMN content {bytes}
  CHECK (content IS NULL OR (damaged_at IS NULL AND octet_length(content) = size_bytes));
ALTER TABLE uploads ADD COLUMN content {bytes};
`
