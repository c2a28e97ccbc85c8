// A metadata store with a row of every kind, or several, and what a comparison of two stores has to look at.

import type { Database, Row } from '../../../src/adapters/metadata-sql/database.ts'
import type { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { copiedTables } from '../../../src/adapters/metadata-sql/store-move/copied-tables.ts'
import type { Tag } from '../../../src/oci/names.ts'
import type { StorageKey } from '../../../src/ports/blob-store.ts'
import type { CopiedObject } from '../../../src/ports/store-move.ts'
import {
  addBlob,
  addInlineBlob,
  addManifest,
  auditEntryOf,
  freshUploadId,
  openShelf,
  tagChange,
  tagged,
} from './metadata-rows.ts'
import { freshKey } from './stored-objects.ts'

export interface FilledRegistry {
  /** Storage keys of all blobs that are objects. */
  readonly keys: readonly StorageKey[]
  readonly trashed: StorageKey
  /** The key of an unfinished upload. */
  readonly unfinished: StorageKey
}

/** Two accounts, with all that can be named: tags, an index, a subject, what is waited for, users with keys, garbage. */
export async function fillRegistry(metadata: SqlMetadataStore, images = 3): Promise<FilledRegistry> {
  const keys: StorageKey[] = []
  for (const account of ['acme', 'zeta']) {
    const shelf = await openShelf(metadata, account, 'team/app')
    for (let at = 0; at < images; at += 1) {
      const blob = await addBlob(shelf, `${account} layer ${at}`)
      keys.push(blob.key)
      const waiting = [`${account} comes later`]
      const image = await addManifest(shelf, `${account} image ${at}`, { blobs: [blob], waiting, tag: `v${at}` })
      const index = await addManifest(shelf, `${account} index ${at}`, { children: [image], tag: `index-${at}` })
      const deletion = { actor: tagChange.actor, cause: 'manifest deleted', tags: [tagged('old')] } as const
      await metadata.transaction(({ deletedManifests: copies }) => copies.keep(shelf.repository, index.id, deletion))
      await addManifest(shelf, `${account} signature ${at}`, {
        more: { subject: image.digest, artifactType: 'application/x.sig', annotations: { note: 'ü "quoted"' } },
      })
    }
    await metadata.transaction(({ repositories }) => repositories.markAsImage(shelf.repository))
    await metadata.transaction(({ policies }) =>
      policies.set(shelf.accountId, 'immutable-tags', '{"rules":[]}', account),
    )
    const lone = await addManifest(shelf, `${account} untagged`)
    await metadata.transaction(({ untagged }) => untagged.add(shelf.repository, lone.id))
    const pull = { repository: shelf.repository, manifestId: lone.id, tag: 'v0' as Tag, pulledAt: 1_000_000 }
    await metadata.pulls.record([pull], 1)
    await metadata.audit.add([auditEntryOf({ account })])
    keys.push((await addBlob(shelf, `${account} unused`)).key)
    await addInlineBlob(shelf, `${account} inline`)
    await addInlineBlob(shelf, '')
  }
  // Some changes of usage are added up, and some are not.
  await metadata.transaction(({ usage }) => usage.fold(3))
  await passEventsOn(metadata)
  // With PostgreSQL, the events of this tag have no position yet.
  await addManifest(await openShelf(metadata, 'acme', 'team/app'), 'after the events', { tag: 'new' })
  await metadata.accounts.setState('zeta', 'disabled')
  await metadata.accounts.suspend('zeta')
  const ann = await metadata.users.add({
    name: 'ann',
    passwordHash: '$argon2id$',
    roles: ['reader'],
    account: 'acme',
    isDisabled: false,
  })
  await metadata.users.add({ name: 'bob', passwordHash: undefined, roles: [], account: 'zeta', isDisabled: true })
  const limits = { expiresAt: 4_102_444_800_000, rights: ['pull'], repositories: ['team/*' as never] } as const
  const open = { expiresAt: undefined, rights: undefined, repositories: undefined }
  await metadata.apiKeys.add({ userId: ann?.id ?? 0, name: 'ci', secretHash: 'hash of ci', ...limits })
  await metadata.apiKeys.add({ userId: ann?.id ?? 0, name: 'own', secretHash: 'hash of own', ...open })
  return { keys, ...(await leaveGarbage(metadata)) }
}

async function passEventsOn(metadata: SqlMetadataStore): Promise<void> {
  const { id } = await metadata.accounts.ensure('acme')
  const settings = {
    url: 'https://ci.example.com/hook',
    format: 'cloudevents',
    types: ['tag.moved'],
    repositories: ['team/*' as never],
    isEnabled: true,
  } as const
  await metadata.transaction(({ webhooks }) => webhooks.add(id, 'ci', 'whsec_AAAA', settings))
  const webhook = await metadata.webhooks.find(id, 'ci')
  await metadata.transaction(async ({ events, webhookDeliveries }) => {
    await events.number(1000)
    if (webhook !== undefined) await webhookDeliveries.add(webhook, await events.listAllAfter(0, 3))
    await events.lockPassed()
    await events.setPassed((await events.listAllAfter(0, 1000)).at(-1)?.position ?? 0)
  })
}

async function leaveGarbage(metadata: SqlMetadataStore) {
  const [trashed, unfinished] = [freshKey(), freshKey()]
  const { repository } = await openShelf(metadata, 'acme', 'team/app')
  await metadata.transaction(async ({ garbage, uploads }) => {
    await garbage.trash({ storageKey: trashed, notes: 'notes' })
    await uploads.create(repository, 'ann', freshUploadId(), unfinished, 0)
  })
  return { trashed, unfinished }
}

/** Records a copy of every blob, without bytes. Gives the new storage keys by the old ones. */
export async function addCopies(from: SqlMetadataStore, to: SqlMetadataStore): Promise<ReadonlyMap<string, string>> {
  const copies = new Map<string, string>()
  for (const { storageKey: sourceKey, digest, sizeBytes } of await from.movableBlobs().list(0, 10_000)) {
    const copy: CopiedObject = { sourceKey, storageKey: freshKey(), digest, sizeBytes }
    await to.copiedObjects().add(copy, [])
    copies.set(sourceKey, copy.storageKey)
  }
  return copies
}

/** All rows that a move takes along, but for the moments that begin resetTime; `keyOf` says how a blob's key is shown. */
export async function dumpRows(
  database: Pick<Database, 'all'>,
  keyOf: (key: string) => string = (key) => key,
): Promise<Readonly<Record<string, readonly Row[]>>> {
  const tables = copiedTables.map(async ({ name, columns, key, resetTime }) => {
    const kept = columns.filter((column) => column !== resetTime)
    const rows = await database.all(`SELECT ${kept.join(', ')} FROM ${name} ORDER BY ${key.join(', ')}`, [])
    return [name, rows.map((row) => comparable(row, keyOf))] as const
  })
  return Object.fromEntries(await Promise.all(tables))
}

function comparable(row: Row, keyOf: (key: string) => string): Row {
  const entries = Object.entries(row).map(([column, value]) => {
    if (value instanceof Uint8Array) return [column, Buffer.from(value).toString('hex')]
    // An inline blob has no object to copy, so its key stays.
    const isObject = column === 'storage_key' && !(row['content'] instanceof Uint8Array)
    return [column, isObject ? keyOf(String(value)) : value]
  })
  return Object.fromEntries(entries)
}
