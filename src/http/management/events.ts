import { formatTime } from '../../lib/quantities.ts'
import type { RegistryEvent } from '../../ports/events.ts'
import { formatEventId, parseEventId } from '../../registry/event-ids.ts'
import { listEvents } from '../../registry/events.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { Application, RegistryExchange } from '../exchange.ts'
import { apiPrefix } from '../mounts.ts'
import { nextPageHeaders, parsePage } from '../paging.ts'
import { json, type Route } from '../route.ts'

const eventsPath = `${apiPrefix}/events`

export const eventRoutes: readonly Route[] = [
  {
    operationId: 'getEvents',
    method: 'GET',
    pattern: eventsPath,
    access: 'enabled account',
    right: 'operate',
    handle: getEvents,
    summary: 'List the events of the account, the newest first',
    description: 'Every push, every move of a tag and every deletion. Events are kept for `events.keep`.',
    parameters: ['n', 'last'],
    answers: { 200: { description: 'The events.', headers: { Link: 'sometimes' }, content: json('EventsResponse') } },
    refusals: ['page-size-invalid'],
  },
]

async function getEvents({ app, account, target }: RegistryExchange): Promise<Answer> {
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const page = await listEvents(app, account.id, { before: parseEventId(app.sealer, account.id, after), limit })
  const last = page.hasMore ? page.items.at(-1) : undefined
  const link = nextPageHeaders(eventsPath, limit, last && formatEventId(app.sealer, last))
  return jsonAnswer(200, { events: page.items.map((event) => showEvent(event, app)) }, link)
}

export function showEvent(event: RegistryEvent, { sealer }: Pick<Application, 'sealer'>) {
  const { type, repository = null, tag = null, digest = null, previousDigest = null, at, actor } = event
  return {
    id: formatEventId(sealer, event),
    type,
    repository,
    tag,
    digest,
    previousDigest,
    at: formatTime(at),
    actor: { subject: actor.subject, credential: actor.fingerprint ?? null, address: actor.address ?? null },
    cause: event.cause ?? null,
    data: event.data ?? null,
  }
}
