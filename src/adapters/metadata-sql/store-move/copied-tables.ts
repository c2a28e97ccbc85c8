/** A table whose rows a move takes along: column by column, so that one which is added must be thought of. */
export interface CopiedTable {
  readonly name: string
  readonly columns: readonly string[]
  /** The order in which rows are read, page by page: a key of the table. Numbers, and where it is so called, a text. */
  readonly key: readonly string[]
  /** Moments that begin anew: the two databases need not agree on the time, and a lease is one from now on. */
  readonly anew?: string
  /** Long rows: how long each is, so that no page is longer than memory allows. */
  readonly weight?: string
  /** The numbers are given out by the database, which has to go on behind them. */
  readonly isNumbered?: true
}

/** In the order of their foreign keys. */
export const copiedTables: readonly CopiedTable[] = [
  {
    name: 'accounts',
    columns: ['id', 'name', 'state', 'image_count', 'created_at', 'changed_at', 'resume_state'],
    key: ['id'],
    isNumbered: true,
  },
  {
    name: 'repositories',
    columns: ['id', 'account_id', 'name', 'manifest_count', 'created_at'],
    key: ['id'],
    isNumbered: true,
  },
  {
    name: 'blobs',
    columns: ['id', 'account_id', 'digest', 'size_bytes', 'storage_key', 'created_at', 'damaged_at'],
    key: ['id'],
    isNumbered: true,
  },
  {
    name: 'blob_links',
    columns: ['account_id', 'repository_id', 'blob_id', 'leased_at'],
    key: ['account_id', 'repository_id', 'blob_id'],
    anew: 'leased_at',
  },
  {
    name: 'blob_queue',
    columns: ['account_id', 'blob_id', 'queued_at'],
    key: ['account_id', 'blob_id'],
    anew: 'queued_at',
  },
  {
    name: 'manifests',
    columns: [
      'id',
      'account_id',
      'repository_id',
      'digest',
      'media_type',
      'size_bytes',
      'subject_digest',
      'artifact_type',
      'annotations',
      'pushed_at',
      'payload',
    ],
    key: ['id'],
    weight: 'size_bytes',
    isNumbered: true,
  },
  {
    name: 'manifest_entries',
    columns: ['account_id', 'repository_id', 'manifest_id', 'digest', 'blob_id', 'child_id'],
    key: ['account_id', 'manifest_id', 'digest'],
  },
  {
    name: 'tags',
    columns: ['account_id', 'repository_id', 'name', 'manifest_id', 'version', 'updated_at'],
    key: ['account_id', 'repository_id', 'name'],
  },
  {
    name: 'users',
    columns: ['id', 'name', 'password_hash', 'roles', 'account', 'is_disabled', 'created_at', 'token_epoch'],
    key: ['id'],
    isNumbered: true,
  },
  {
    name: 'api_keys',
    columns: [
      'id',
      'user_id',
      'name',
      'secret_hash',
      'expires_at',
      'created_at',
      'rights',
      'repositories',
      'last_used_at',
    ],
    key: ['id'],
    isNumbered: true,
  },
]

/** The rest, with the reason. */
export const otherTables: Readonly<Record<string, string>> = {
  uploads: 'their bytes stay with the old store; clients begin anew',
  trash: 'belongs to the old store',
  turns: 'who does which work is for each store to say',
  marks: 'are about one store',
  copied_objects: 'are about a move to one store',
  schema_versions: 'each store has its own',
  signing_keys: 'go by way of their port, because they may be files',
}
