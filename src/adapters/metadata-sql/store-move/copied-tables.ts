import { eventTables } from './copied-event-tables.ts'

/** A table whose rows a move copies. Columns are listed, so that a new column needs a decision. */
export interface CopiedTable {
  readonly name: string
  readonly columns: readonly string[]
  /** The key by which rows are read page by page. */
  readonly key: readonly string[]
  /** A time that is set to the target's present time: the clocks of two databases may differ. */
  readonly resetTime?: string
  /** An SQL expression for the length of a long row, so that a page of rows fits into memory. */
  readonly weight?: string
  /** The database generates the ids, and has to continue after the copied ones. */
  readonly isNumbered?: true
}

/** Parents before children, as the foreign keys require. */
export const copiedTables: readonly CopiedTable[] = [
  {
    name: 'accounts',
    columns: [
      'id',
      'name',
      'state',
      'created_at',
      'changed_at',
      'resume_state',
      'deleting_since',
      'has_immutable_tags',
      'untagged_ms',
      'quota_bytes',
      'quota_repositories',
      'quota_tags',
    ],
    key: ['id'],
    isNumbered: true,
  },
  {
    name: 'repositories',
    columns: ['id', 'account_id', 'name', 'is_image', 'created_at'],
    key: ['id'],
    isNumbered: true,
  },
  {
    name: 'blobs',
    columns: [
      'id',
      'account_id',
      'digest',
      'size_bytes',
      'storage_key',
      'created_at',
      'damaged_at',
      'content',
      'owner_id',
    ],
    key: ['id'],
    weight: 'CASE WHEN content IS NULL THEN 0 ELSE size_bytes END',
    isNumbered: true,
  },
  {
    name: 'blob_links',
    columns: ['account_id', 'repository_id', 'blob_id', 'leased_at'],
    key: ['account_id', 'repository_id', 'blob_id'],
    resetTime: 'leased_at',
  },
  {
    name: 'blob_queue',
    columns: ['account_id', 'blob_id', 'queued_at'],
    key: ['account_id', 'blob_id'],
    resetTime: 'queued_at',
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
    columns: [
      'account_id',
      'repository_id',
      'name',
      'manifest_id',
      'version',
      'updated_at',
      'previous_manifest_id',
      'updated_by',
    ],
    key: ['account_id', 'repository_id', 'name'],
  },
  {
    name: 'tag_history',
    columns: ['id', 'account_id', 'repository_id', 'tag', 'from_digest', 'to_digest', 'moved_at', 'moved_by', 'cause'],
    key: ['id'],
    isNumbered: true,
  },
  {
    name: 'untagged_manifests',
    columns: ['account_id', 'manifest_id', 'repository_id', 'since', 'was_tagged'],
    key: ['account_id', 'manifest_id'],
  },
  ...eventTables,
  {
    name: 'manifest_pulls',
    columns: ['account_id', 'manifest_id', 'pulled_at'],
    key: ['account_id', 'manifest_id'],
  },
  {
    name: 'tag_pulls',
    columns: ['account_id', 'repository_id', 'tag', 'pulled_at'],
    key: ['account_id', 'repository_id', 'tag'],
  },
  {
    name: 'repository_pulls',
    columns: ['account_id', 'repository_id', 'pulled_at'],
    key: ['account_id', 'repository_id'],
  },
  {
    name: 'deleted_manifests',
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
      'payload',
      'tags',
      'deleted_at',
      'deleted_by',
      'cause',
    ],
    key: ['id'],
    weight: 'size_bytes',
    isNumbered: true,
  },
  {
    name: 'deleted_entries',
    columns: ['account_id', 'deleted_id', 'digest', 'blob_id', 'is_manifest'],
    key: ['account_id', 'deleted_id', 'digest'],
  },
  {
    name: 'policies',
    columns: ['account_id', 'kind', 'body', 'changed_at', 'changed_by'],
    key: ['account_id', 'kind'],
    weight: 'length(body)',
  },
  {
    name: 'repository_usage',
    columns: [
      'account_id',
      'repository_id',
      'manifests',
      'tags',
      'bytes',
      'manifest_bytes',
      'owned_bytes',
      'pushed_at',
      'recounts',
    ],
    key: ['account_id', 'repository_id'],
  },
  {
    name: 'account_usage',
    columns: ['account_id', 'images', 'manifests', 'tags', 'bytes', 'stored_bytes'],
    key: ['account_id'],
  },
  {
    name: 'usage_changes',
    columns: [
      'id',
      'account_id',
      'repository_id',
      'blob_id',
      'images',
      'manifests',
      'tags',
      'bytes',
      'manifest_bytes',
      'owned_bytes',
      'stored_bytes',
      'pushed_at',
    ],
    key: ['id'],
    isNumbered: true,
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
  {
    name: 'audit',
    columns: [
      'id',
      'account',
      'happened_at',
      'actor',
      'credential',
      'key_name',
      'address',
      'action',
      'target',
      'repository',
      'outcome',
      'reason',
      'times',
    ],
    key: ['id'],
    isNumbered: true,
  },
]

/** The tables that a move does not copy, and why. */
export const otherTables: Readonly<Record<string, string>> = {
  uploads: 'the bytes of unfinished uploads are not copied; clients start them again',
  trash: 'names objects of the source',
  turns: 'says when background work of this store is due',
  marks: 'describe this store',
  copied_objects: 'belong to a move to this store',
  schema_versions: 'each store has its own schema',
  signing_keys: 'are copied through their port, because they may be files',
}
