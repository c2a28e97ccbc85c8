import { formatTime, parseTime } from '../../lib/quantities.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import type { AuditEntry, AuditFilter } from '../../ports/audit.ts'
import { formatAuditCursor, listAudit, parseAuditCursor } from '../../registry/audit-list.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { CallerExchange } from '../exchange.ts'
import { apiPrefix } from '../mounts.ts'
import { nextPageLink, openPosition, parsePage } from '../paging.ts'
import { json, type Route } from '../route.ts'

const path = `${apiPrefix}/audit`

export const auditRoutes: readonly Route[] = [
  {
    operationId: 'getAudit',
    method: 'GET',
    pattern: path,
    access: 'known caller',
    right: 'operate',
    handle: getAudit,
    summary: 'List who did what in the account, the newest first',
    description:
      'Changes of content, users, keys and settings of the account, logins, and refused requests. Entries are kept for `audit.keep`. A page can have fewer entries than `n` although `Link` leads to more.',
    parameters: ['since', 'until', 'actor', 'action', 'repository', 'outcome', 'n', 'last'],
    answers: {
      200: {
        description: 'The entries.',
        headers: { 'Cache-Control': 'always', Link: 'sometimes' },
        content: json('AuditResponse'),
      },
    },
    refusals: ['time-invalid', 'page-size-invalid'],
  },
]

async function getAudit({ app, principal, target }: CallerExchange): Promise<Answer> {
  const { query } = target
  const { after, limit = app.settings.pageDefault } = parsePage(query, app.settings.pageMax)
  const page = await listAudit(app, principal.account, parseFilter(query), {
    after: parseAuditCursor(openPosition(app, after)),
    limit,
  })
  const headers: Record<string, string> = { 'cache-control': 'no-store' }
  if (page.next !== undefined) {
    const same = Object.fromEntries([...query].filter(([name]) => name in filterNames))
    headers['link'] = nextPageLink(path, {
      ...same,
      n: String(limit),
      last: app.sealer.seal(formatAuditCursor(page.next)),
    })
  }
  return jsonAnswer(200, { entries: page.items.map(showEntry) }, headers)
}

const filterNames: Readonly<Record<keyof AuditFilter, true>> = {
  since: true,
  until: true,
  actor: true,
  action: true,
  repository: true,
  outcome: true,
}

/** An outcome that does not exist, or a text with NUL, matches nothing: no entry has it. */
function parseFilter(query: URLSearchParams): AuditFilter {
  const text = (name: keyof AuditFilter) => query.get(name)?.replaceAll('\0', '\uFFFD') || undefined
  return {
    since: parseTimeOf(query, 'since'),
    until: parseTimeOf(query, 'until'),
    actor: text('actor'),
    action: text('action'),
    repository: text('repository'),
    outcome: text('outcome') as AuditFilter['outcome'],
  }
}

function parseTimeOf(query: URLSearchParams, name: 'since' | 'until'): number | undefined {
  const text = query.get(name)
  const time = text === null ? undefined : parseTime(text)
  if (text !== null && time === undefined) throw new RegistryRefusal('time-invalid', { [name]: text.slice(0, 64) })
  return time
}

function showEntry(entry: AuditEntry) {
  return {
    at: formatTime(entry.happenedAt),
    actor: entry.actor ?? null,
    key: entry.keyName ?? null,
    credential: entry.credential ?? null,
    address: entry.address ?? null,
    action: entry.action,
    target: entry.target ?? null,
    repository: entry.repository ?? null,
    outcome: entry.outcome,
    reason: entry.reason ?? null,
    count: entry.count,
  }
}
