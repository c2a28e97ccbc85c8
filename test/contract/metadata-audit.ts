// The contract of the audit log, and of the recorder that writes it.
import { expect, test } from 'bun:test'
import type { AuditEntry, AuditFilter, NewAuditEntry } from '../../src/ports/audit.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { AuditRecorder, removeOldAuditEntries } from '../../src/registry/audit.ts'
import { formatAuditCursor, listAudit, parseAuditCursor } from '../../src/registry/audit-list.ts'
import { addManifest, auditEntryOf, hourMs, openShelf, tagged } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

/** All entries, page by page, with the cursor of each page as a client sends it. */
async function listAll(metadata: MetadataStore, account?: string, filter: AuditFilter = {}, limit = 7) {
  const found: AuditEntry[] = []
  let last: string | undefined
  do {
    const page = await listAudit({ metadata }, account, filter, { after: parseAuditCursor(last), limit })
    expect(page.items.length).toBeLessThanOrEqual(limit)
    found.push(...page.items)
    last = page.next && formatAuditCursor(page.next)
  } while (last !== undefined)
  return found
}

/** Gives positions to all events, as a server with PostgreSQL does in the background. */
const numberEvents = (metadata: MetadataStore) => metadata.transaction(({ events }) => events.number(1000))

const summaryOf = (entries: readonly NewAuditEntry[]) =>
  entries.map(({ account, actor, action, reason, count }) => [account, actor, action, reason, count])

export function auditContract(open: OpenMetadataStore): void {
  test('lists entries and events together, page by page, as a model does for every filter', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    const rival = await openShelf(metadata, 'rival')
    const start = await metadata.now()
    const model: NewAuditEntry[] = []
    const manifest = await addManifest(shelf, 'one')
    for (let step = 0; step < 60; step += 1) {
      const entry = auditEntryOf({
        account: [undefined, 'acme', 'acme', 'rival'][step % 4],
        actor: step % 3 === 0 ? 'ann' : 'ben',
        action: step % 5 === 0 ? 'login' : 'postUser',
        outcome: step % 7 === 0 ? 'refused' : 'done',
        happenedAt: start - (step % 20) * hourMs,
      })
      model.push(entry)
      await metadata.audit.add([entry])
      const owner = step % 6 === 0 ? rival : shelf
      const change = {
        actor: { subject: step % 2 === 0 ? 'ann' : 'ben', address: '192.0.2.7' },
        cause: 'push',
      } as const
      if (owner === rival) await addManifest(rival, `rival ${step}`, { tag: `t${step}` })
      else await metadata.transaction(({ tags }) => tags.point(repository, tagged(`t${step}`), manifest.id, change))
    }
    await numberEvents(metadata)
    for (const account of ['acme', 'rival', undefined]) {
      const id = account === undefined ? undefined : (await metadata.accounts.find(account))?.id
      const { entries } = await metadata.audit.listEvents(id, {}, undefined, { limit: 1000, lookAt: 1000 })
      const all = [...model.filter((entry) => account === undefined || entry.account === account), ...entries]
      const filters: AuditFilter[] = [
        {},
        { actor: 'ann' },
        { action: 'login' },
        { action: 'tag.created', actor: 'ben' },
        { outcome: 'refused' },
        { since: start - 5 * hourMs, until: start - 2 * hourMs },
        { since: start - 1 },
        { repository: 'app', outcome: 'done' },
      ]
      for (const filter of filters) {
        const { actor, action, outcome, repository: name, since = 0, until = Number.POSITIVE_INFINITY } = filter
        const expected = all.filter(
          (entry) =>
            (actor ?? entry.actor) === entry.actor &&
            (action ?? entry.action) === entry.action &&
            (outcome ?? entry.outcome) === entry.outcome &&
            (name ?? entry.repository) === entry.repository &&
            entry.happenedAt >= since &&
            entry.happenedAt < until,
        )
        const found = await listAll(metadata, account, filter)

        expect([filter, summaryOf(found).sort()]).toEqual([filter, summaryOf(expected).sort()])
        const times = found.map(({ happenedAt }) => happenedAt)
        expect(times).toEqual(times.toSorted((one, other) => other - one))
      }
      expect(entries.length).toBeGreaterThan(5)
    }
    const [newest] = await listAll(metadata, 'acme', { action: 'tag.created' })
    expect(newest).toMatchObject({ target: 'app:t59', repository: 'app', address: '192.0.2.7', account: 'acme' })
  })

  test('pages through many entries of which few match', async () => {
    const metadata = await open()
    const many = Array.from({ length: 5_000 }, (_, at) => auditEntryOf({ happenedAt: at, actor: `${at % 2500}` }))
    await metadata.audit.add(many)

    expect((await listAll(metadata, 'acme', { actor: '3' })).map(({ happenedAt }) => happenedAt)).toEqual([2503, 3])
    expect(await listAll(metadata, undefined, {}, 1000)).toHaveLength(5_000)
  })

  test('loses what is old enough, in portions, and nothing while the registry is read-only', async () => {
    const metadata = await open()
    const now = await metadata.now()
    await metadata.audit.add(Array.from({ length: 2_500 }, () => auditEntryOf({ happenedAt: now - 2 * hourMs })))
    await metadata.audit.add([auditEntryOf({ happenedAt: now })])
    await metadata.marks.set('read-only', 'moved')
    expect(await removeOldAuditEntries({ metadata }, hourMs)).toBe(0)
    await metadata.marks.remove('read-only')

    expect(await removeOldAuditEntries({ metadata }, hourMs)).toBe(2_500)
    expect(await listAll(metadata, undefined, {}, 100)).toHaveLength(1)
  })

  test('counts refusals that are alike, bounds their number, and knows a user by the name that a failed login gave', async () => {
    const metadata = await open()
    await metadata.users.add({ name: 'ann', passwordHash: undefined, roles: [], account: 'acme', isDisabled: false })
    let now = 10 * hourMs
    const recorder = new AuditRecorder({ metadata }, { now: () => now }, { keepMs: hourMs, hasUsers: true })
    const failed = (address: string, claimedUser?: string) => {
      const unknown = { account: undefined, actor: undefined, credential: undefined, keyName: undefined }
      const entry = auditEntryOf({ ...unknown, address, action: 'login', target: undefined, outcome: 'refused' })
      recorder.noteRefusal({ ...entry, reason: 'login-invalid', claimedUser })
    }
    for (let times = 0; times < 5; times += 1) failed('192.0.2.1', 'ann')
    for (const typed of ['hunter2', 'hunter3']) failed('192.0.2.1', typed)
    await recorder.flush()
    for (let times = 0; times < 4; times += 1) failed('192.0.2.1', 'ann')
    await recorder.flush()
    const first = await listAll(metadata)
    expect(new Set(summaryOf(first))).toEqual(
      new Set([
        ['acme', 'ann', 'login', 'login-invalid', 5],
        [undefined, undefined, 'login', 'login-invalid', 2],
      ]),
    )

    now += 61_000
    for (let at = 0; at < 3_000; at += 1) failed(`198.51.100.${at}`)
    await recorder.flush({ isLast: true })
    const all = await listAll(metadata, undefined, {}, 500)
    const total = all.reduce((sum, { count }) => sum + count, 0)
    expect([total, all.length]).toEqual([11 + 3_000, 3 + 998])
    expect(JSON.stringify(all)).not.toContain('hunter2')
    expect(await listAll(metadata, 'acme')).toHaveLength(2)

    await recorder.record(auditEntryOf({ actor: 'a\0b', target: `${'x'.repeat(511)}😀`, happenedAt: now }))
    const [odd] = await listAll(metadata, 'acme', { since: now })
    expect([odd?.actor, odd?.target?.at(-1), odd?.target?.length]).toEqual(['a\uFFFDb', '\uFFFD', 512])

    now += 61_000
    for (let at = 0; at < 500; at += 1) failed('192.0.2.2', `name-${at}`)
    await recorder.flush()
    expect((await listAll(metadata, undefined, { since: now })).map(({ count }) => count)).toEqual([500])
  })
}
