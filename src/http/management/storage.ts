import { formatTime } from '../../lib/quantities.ts'
import { describeStorage, listUploads } from '../../registry/storage.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RegistryExchange } from '../exchange.ts'
import { apiPrefix } from '../mounts.ts'
import { nextPageHeaders, parsePage } from '../paging.ts'
import { json, type Route } from '../route.ts'

export const storageRoutes: readonly Route[] = [
  {
    operationId: 'getStorage',
    method: 'GET',
    pattern: `${apiPrefix}/storage`,
    access: 'enabled account',
    right: 'operate',
    handle: getStorage,
    summary: 'Get what the account stores',
    answers: { 200: { description: 'The numbers.', content: json('StorageResponse') } },
  },
  {
    operationId: 'getUploads',
    method: 'GET',
    pattern: `${apiPrefix}/uploads`,
    access: 'enabled account',
    right: 'operate',
    handle: getUploads,
    summary: 'List the unfinished uploads of the account',
    description:
      'In the order of their ids. A request looks at a part of the uploads, so a page can have fewer entries than `n`, or none, although `Link` leads to more.',
    parameters: ['n', 'last'],
    answers: {
      200: { description: 'The uploads.', headers: { Link: 'sometimes' }, content: json('UploadsResponse') },
    },
    refusals: ['page-size-invalid'],
  },
]

async function getStorage({ app, account }: RegistryExchange): Promise<Answer> {
  const { waiting, uploads, isCounting, ...usage } = await describeStorage(app, account.id)
  return jsonAnswer(200, { ...usage, waitingForCollection: waiting, unfinishedUploads: uploads, isCounting })
}

async function getUploads({ app, account, target }: RegistryExchange): Promise<Answer> {
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const { items, next } = await listUploads(app, account.id, { after, limit: Math.max(1, limit) })
  const uploads = items.map(({ startedAt, touchedAt, ...upload }) => ({
    ...upload,
    startedAt: formatTime(startedAt),
    touchedAt: formatTime(touchedAt),
  }))
  return jsonAnswer(
    200,
    { uploads: limit === 0 ? [] : uploads },
    nextPageHeaders(`${apiPrefix}/uploads`, limit, limit === 0 ? undefined : next),
  )
}
