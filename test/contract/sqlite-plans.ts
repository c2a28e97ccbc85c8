// How SQLite finds the rows of every statement of the metadata store. SQLite has no statistics here, so a plan follows from the
// statement and the indexes alone, and holds for every registry. (PostgreSQL's plans depend on the rows: see bench/scale.)
import { describe, expect, test } from 'bun:test'
import type { Database, Queryable } from '../../src/adapters/metadata-sql/database.ts'
import { migrate } from '../../src/adapters/metadata-sql/migrate.ts'
import type { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { addCopies, fillRegistry } from '../support/stores/full-registry.ts'
import type { NamedStatements } from './named-statements.ts'

/**
 * Steps that may find more than one row, and the methods that may take them: the index (or the table, by its key) and the columns
 * by which it is searched. `name>` is a range. All other steps must find one row, by a whole unique key or the row id.
 */
const stepsToManyRows: Readonly<Record<string, string>> = {
  'accounts: name>': 'accounts.list',
  'accounts_being_deleted: id>': 'accountDeletions.findNext',
  'api_keys: user_id': 'accountDeletions.removeSome apiKeys.list users.add',
  'audit_by_time: happened_at<': 'audit.removeOld',
  'audit_by_time: happened_at> happened_at<': 'audit.list',
  'audit_of_account: account': 'accountDeletions.removeSome',
  'audit_of_account: account happened_at> happened_at<': 'audit.list',
  'b: rowid>': 'movableBlobs.list usage.countBlobs',
  'blob_links: account_id repository_id': 'accountDeletions.removeSome garbage.removeEmptyRepositories',
  'blob_links: account_id repository_id blob_id>': 'usageRecount.recountNext',
  'blob_links_by_blob: account_id blob_id':
    'accountDeletions.removeSome blobs.add blobs.listHolders garbage.forecast garbage.isInUse garbage.lockNextDue garbage.moveToTrash usage.fold',
  'blob_links_by_blob: account_id blob_id repository_id': 'garbage.removeUnusedLinks',
  'blob_links_by_blob: account_id blob_id repository_id>': 'garbage.removeUnusedLinks',
  'blob_queue_by_age: queued_at<': 'garbage.forecast',
  'blob_queue_by_age: queued_at> queued_at<': 'garbage.lockNextDue',
  'blobs: storage_key> storage_key<': 'blobs.replaceDamaged garbage.trashOrphans',
  'e: rowid<': 'audit.listEvents events.removeOld',
  'e: rowid> rowid<': 'audit.listEvents',
  'events: rowid>': 'events.listAllAfter',
  'events_of_account: account_id id<': 'audit.listEvents events.listBefore',
  'events_of_account: account_id id> id<': 'audit.listEvents',
  'events_of_account: account_id id>': 'events.listAfter',
  'deleted_entries: account_id deleted_id':
    'accountDeletions.removeSome deletedManifests.expire deletedManifests.findLocked deletedManifests.keep',
  'deleted_entries_of_blob: account_id blob_id':
    'accountDeletions.removeSome blobs.add garbage.forecast garbage.isInUse garbage.keep garbage.moveToTrash',
  'deleted_manifests_by_age: deleted_at> deleted_at<': 'deletedManifests.expire',
  'deleted_manifests_of_repository: account_id repository_id':
    'accountDeletions.removeSome garbage.removeEmptyRepositories',
  'deleted_manifests_of_repository: account_id repository_id deleted_at<': 'deletedManifests.list',
  'manifest_entries: account_id manifest_id':
    'accountDeletions.removeSome deletedManifests.keep deletionPreviews.listChildren deletionPreviews.measureExclusive manifests.listBlobs manifests.remove manifests.save untagged.addRelated',
  'manifest_entries_of_blob: account_id blob_id': 'garbage.forecast garbage.isInUse garbage.keep usage.findWaiting',
  'manifest_entries_of_blob: account_id blob_id repository_id<': 'deletionPreviews.measureExclusive',
  'manifest_entries_of_blob: account_id blob_id repository_id>': 'deletionPreviews.measureExclusive',
  'manifest_entries_of_child: account_id child_id':
    'accountDeletions.removeSome deletionPreviews.listParents manifests.detachFromIndexes manifests.isListed manifests.remove manifests.save untagged.check untagged.list untagged.lock',
  'manifest_entries_of_link: account_id repository_id blob_id':
    'accountDeletions.removeSome blobs.isUsed blobs.link blobs.renewLeases blobs.unlink deletionPreviews.measureExclusive garbage.moveToTrash garbage.removeUnusedLinks',
  'manifest_entries_waiting: account_id repository_id digest': 'blobs.link manifests.fillEntries',
  'manifests: account_id repository_id':
    'accountDeletions.removeSome garbage.removeEmptyRepositories repositories.lockForRemoval',
  'manifests: account_id repository_id digest>': 'deletionPreviews.list usageRecount.recountNext',
  'manifests_by_subject: account_id repository_id subject_digest': 'deletionPreviews.listReferrers untagged.addRelated',
  'manifests_by_subject: account_id repository_id subject_digest digest>': 'manifests.listReferrers',
  'policies_by_kind: kind account_id>': 'policies.listAccounts',
  'r: rowid>': 'usageRecount.recountNext',
  'repositories: account_id name>': 'repositories.list usage.listByName',
  'repositories: account_id name> name<': 'repositories.list',
  'repositories_without_manifests: account_id id>': 'garbage.removeEmptyRepositories',
  'repositories_without_manifests: account_id>': 'garbage.removeEmptyRepositories',
  'repository_usage_by_push: account_id (pushed_at,repository_id)<(,)': 'usage.listBy',
  'repository_usage_by_size: account_id (bytes,repository_id)<(,)': 'usage.listBy',
  'tag_history_by_age: moved_at> moved_at<': 'tagHistory.removeSuperseded',
  'tag_history_of_tag: account_id repository_id': 'accountDeletions.removeSome garbage.removeEmptyRepositories',
  'tag_history_of_tag: account_id repository_id tag moved_at<':
    'tagHistory.findLastUntil tagHistory.list tagHistory.removeSuperseded',
  'tag_history_of_tag: account_id repository_id tag moved_at>': 'tagHistory.findFirstAfter',
  'tags: account_id repository_id': 'accountDeletions.removeSome garbage.removeEmptyRepositories',
  'tags: account_id repository_id name>':
    'deletionPreviews.listTagged tags.list tags.listStates usageRecount.recountNext',
  'tags_of_manifest: account_id manifest_id':
    'accountDeletions.removeSome deletionPreviews.listTagsOf manifests.remove manifests.save tags.removeAllOf untagged.check untagged.list untagged.lock',
  'trash_by_age: trashed_at<': 'garbage.claimTrashed garbage.forecast',
  'untagged_manifests_by_age: (since,manifest_id)>(,)': 'untagged.check',
  'untagged_manifests_of_repository: account_id repository_id (since,manifest_id)>(,)': 'untagged.list',
  'usage_changes_of_repository: account_id repository_id': 'garbage.removeEmptyRepositories usage.findOfRepository',
  'uploads_by_repository: account_id repository_id': 'accountDeletions.removeSome garbage.removeEmptyRepositories',
  'uploads_by_repository: account_id repository_id done_digest': 'uploads.countOpen',
  'uploads_done_by_age: touched_at<': 'garbage.expireUploads',
  'uploads_open_by_age: created_at<': 'garbage.expireUploads',
  'uploads_open_by_touch: touched_at<': 'garbage.expireUploads',
  'webhook_deliveries_by_end: finished_at<': 'webhookDeliveries.removeOld',
  'webhook_deliveries_by_state: webhook_id state id<': 'webhookDeliveries.list',
  'webhook_deliveries_of_webhook: webhook_id id<': 'webhookDeliveries.list',
  'webhook_deliveries_of_webhook: webhook_id': 'accountDeletions.removeSome webhookDeliveries.removeOf webhooks.remove',
  'webhook_deliveries_pending: webhook_id repository': 'webhookDeliveries.finish webhookDeliveries.listPending',
  'webhook_queues: webhook_id': 'accountDeletions.removeSome',
  'webhook_queues_by_next: webhook_id':
    'accountDeletions.removeSome webhookDeliveries.release webhooks.remove webhooks.update',
  'webhook_queues_by_next: webhook_id next_at<': 'webhookDeliveries.listQueues',
  'webhooks: account_id name>': 'webhooks.list',
  'webhooks_by_due: due_at<': 'webhookDeliveries.listDue',
  'users: name>': 'users.list',
  'users_of_account: account': 'accountDeletions.removeSome users.count users.lockAccount',
  'users_of_account: account name>': 'users.list',
}

/** Methods with steps that read more, the more there is: the reason why that is right, and the steps. */
const growing: Readonly<Record<string, readonly [reason: string, ...steps: string[]]>> = {
  'accountDeletions.finish': [
    'the account has no rows left',
    'policies: account_id',
    'blobs: account_id',
    'repositories: account_id',
    'webhooks: account_id',
  ],
  'accountDeletions.removeSome': [
    'at most 200 rows of the account; a queue that is short, if it has any rows',
    'webhooks: account_id',
    'manifest_entries: account_id',
    'deleted_entries: account_id',
    'deleted_manifests: account_id',
    'tag_pulls: account_id',
    'tags: account_id',
    'manifest_pulls: account_id',
    'untagged_manifests: account_id',
    'manifests: account_id',
    'uploads: account_id',
    'blob_links_by_blob: account_id',
    'blob_queue: account_id',
    'blobs: account_id',
    'tag_history_of_tag: account_id',
    'repository_pulls: account_id',
    'repository_usage_by_push: account_id',
    'repositories: account_id',
    'policies: account_id',
    'usage_changes_of_repository: account_id',
    'SCAN event_queue',
    'events_of_account: account_id',
  ],
  'accounts.measure': [
    'an operator asks for the sums of an account',
    'repositories: account_id',
    'manifests: account_id',
    'tags_of_manifest: account_id',
    'blobs: account_id',
  ],
  'apiKeys.hasAnyBeenUsed': ['once, when a server starts; it ends at the first key that was used', 'SCAN api_keys'],
  'events.hasUnnumbered': ['one row; nothing, with SQLite', 'SCAN event_queue'],
  'deletionPreviews.listChildren': ['the entries of one manifest', 'SCAN e'],
  'deletionPreviews.listTagged': ['a page of tags', 'SCAN t'],
  'deletionPreviews.measureExclusive': ['a range that is cut at the number of deleted manifests', 'SCAN few'],
  'garbage.forecast': ['an operator asks; finished uploads are not read', 'SCAN u BY uploads_open_by_age'],
  'garbage.lockNextDue': ["a list of the blob's links, cut at 201", 'SCAN few'],
  'garbage.removeEmptyRepositories': [
    'two lists of at most 500 rows, merged',
    'SCAN same_account',
    'SCAN later_accounts',
    'USE TEMP B-TREE FOR ORDER BY',
  ],
  'signingKeys.list': ['a handful of keys', 'SCAN signing_keys', 'USE TEMP B-TREE FOR ORDER BY'],
  'usage.findOfAccount': [
    'what is not folded yet: the changes of about a second',
    'usage_changes_of_repository: account_id',
    'SCAN parts',
  ],
  'usage.findOfRepository': ['what is not folded yet: the changes of about a second', 'SCAN parts'],
  'usage.findWaiting': ['a list that is cut at a limit', 'blob_queue: account_id', 'SCAN q'],
  'usage.fold': ['in the order of the ids, cut at a limit', 'SCAN c'],
  'uploads.listOpen': [
    'only for operators; reads only open sessions, in the order of the answer',
    'SCAN u BY uploads_open_by_touch',
  ],
  'uploads.releaseAllTurns': ['once, when the only server of this database starts', 'SCAN uploads'],
  'webhooks.listEnabled': ['at most webhooks.per_account of each account', 'webhooks: account_id'],
  'webhooks.count': ['the same', 'webhooks: account_id'],
}

/** No look into a table: a list that the statement was given, a row of constants, a part of the plan that has a line of its own. */
const noTable = /VIRTUAL TABLE INDEX|CONSTANT ROW|VALUES CLAUSE|^(?!SCAN|SEARCH|USE TEMP B-TREE)/
const ownIndex = /^sqlite_autoindex_(\w+)_\d+$/

/** `SEARCH u USING INDEX uploads_by_repository (account_id=? AND touched_at<?)` -> `uploads_by_repository: account_id touched_at<` */
function shorten(detail: string): string[] {
  if (noTable.test(detail)) return []
  const [, alias, index, terms = ''] =
    /^SEARCH (\w+) USING (?:COVERING )?(?:INDEX (\w+)|INTEGER PRIMARY KEY) \((.*)\)/.exec(detail) ?? []
  if (alias === undefined) return [detail.replace(' USING COVERING INDEX ', ' BY ').replace(' USING INDEX ', ' BY ')]
  const columns = terms.replaceAll(' AND ', ' ').replaceAll('=?', '').replaceAll('?', '')
  return [`${index?.replace(ownIndex, '$1') ?? alias}: ${columns}`]
}

async function planOf(queries: Queryable, sql: string): Promise<string[]> {
  const numbers = [...sql.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number))
  const values = Array.from({ length: Math.max(0, ...numbers) }, () => null)
  const rows = await queries.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, values)
  return rows.flatMap(({ detail }) => shorten(detail))
}

/** All unique keys, in the form of a step that finds one row by it. */
async function uniqueKeysOf(queries: Queryable): Promise<ReadonlySet<string>> {
  const keys = await queries.all<{ name: string; columns: string }>(
    `SELECT i.name, (SELECT group_concat(x.name, ' ') FROM pragma_index_info(i.name) x) AS columns
     FROM sqlite_master t JOIN pragma_index_list(t.name) i WHERE t.type = 'table' AND i."unique" = 1`,
    [],
  )
  return new Set(keys.map(({ name, columns }) => `${name.replace(ownIndex, '$1')}: ${columns}`))
}

/** It reads more, the more there is: a table or index from its beginning, or all that an account has. */
function grows(step: string): boolean {
  return /^SCAN \w+( BY|$)|TEMP B-TREE|: account_id$/.test(step)
}

function findFaults(name: string, sql: string, plan: readonly string[], unique: ReadonlySet<string>): string[] {
  if (name.startsWith('takeRowsOf: ')) {
    return sql.includes('LIMIT $') && (plan.length !== 1 || plan.some(grows)) ? [`${name}: ${plan.join('; ')}`] : []
  }
  const method = name.replace(/:.*/, '')
  return plan.flatMap((step) => {
    if (grows(step)) return growing[method]?.includes(step, 1) ? [] : [`${name}: ${step}: grows, and has no reason`]
    const isOneRow = step.endsWith(' rowid') || unique.has(step)
    return isOneRow || stepsToManyRows[step]?.split(' ').includes(method) ? [] : [`${name}: ${step}`]
  })
}

const advice = `
These statements find rows in a way that test/contract/sqlite-plans.ts does not list.
- A new statement: does each step find its rows by a range that the answer needs? Then add the method to the step.
- A changed plan: is the new one as good? If it binds fewer columns, change the statement or add an index (a migration).
- "is not used": no statement has this step (remove it), no contract test asks the statement any more (write one), or only some
  tests of the file ran (-t).
- A step that starts with SCAN or USE TEMP B-TREE, or binds the account alone, needs a reason in \`growing\`.`

export function sqlitePlansContract(
  open: () => Promise<SqlMetadataStore>,
  statements: NamedStatements,
  openBare: () => Database,
): void {
  describe('metadata store, SQLite: plans', () => {
    test('every statement finds one row by a whole key, or several as it is listed here', async () => {
      await moveEverything(open)
      const database = openBare()
      await migrate(database)
      const unique = await uniqueKeysOf(database)
      const named = [...statements.list(new Set())]
      // On a connection of its own: Bun leaves an EXPLAIN under way, and nothing can be committed beside it.
      const plans = await database.snapshot((queries) => Promise.all(named.map(([, sql]) => planOf(queries, sql))))
      await database.close()
      const faults = named.flatMap(([name, sql], at) => findFaults(name, sql, plans[at] ?? [], unique))
      const taken = new Set(
        named.flatMap(([name], at) => (plans[at] ?? []).map((step) => `${step} by ${name.replace(/:.*/, '')}`)),
      )
      for (const [step, methods] of Object.entries(stepsToManyRows)) {
        for (const method of methods.split(' ')) {
          if (!taken.has(`${step} by ${method}`)) faults.push(`${step} by ${method}: is not used`)
        }
      }

      expect(faults.length === 0 ? '' : `${faults.join('\n')}\n${advice}`).toBe('')
    })

    test('the check finds statements that read a table or an account from its beginning, or by a part of a key (control)', () => {
      const bad = [
        'SCAN uploads',
        'SCAN u BY uploads_by_age',
        'blobs: account_id',
        'USE TEMP B-TREE FOR ORDER BY',
        'uploads_by_repository: account_id repository_id',
      ]
      const unique = new Set(['uploads: account_id id'])
      for (const step of bad) expect(findFaults('uploads.find: SELECT uploads', '', [step], unique)).toHaveLength(1)
      expect(findFaults('uploads.find: SELECT uploads', '', ['uploads: account_id id', 'r: rowid'], unique)).toEqual([])
    })
  })
}

/** A move reads and writes all rows by design, so its statements need no line above; its pages must be found by key. */
async function moveEverything(open: () => Promise<SqlMetadataStore>): Promise<void> {
  const [source, target] = [await open(), await open()]
  await fillRegistry(source)
  const copies = await addCopies(source, target)
  await target.copiedObjects().list([...copies.keys()] as never)
  await target.takeRowsOf(source, { id: 'move', keepsBlobStore: true })
}
