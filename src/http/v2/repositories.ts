import { listRepositories } from '../../registry/repositories.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RegistryExchange } from '../exchange.ts'
import { nextPageHeaders, parsePage } from '../paging.ts'
import { json, type Route } from '../route.ts'

export const repositoryRoutes: readonly Route[] = [
  {
    operationId: 'getCatalog',
    method: 'GET',
    pattern: '/_catalog',
    access: 'enabled account',
    right: 'pull',
    handle: getCatalog,
    summary: 'List the repositories that the caller may pull from',
    parameters: ['n', 'last'],
    answers: {
      200: {
        description: 'Names in byte order.',
        headers: { Link: 'sometimes' },
        content: json('CatalogResponse'),
      },
    },
    refusals: ['page-size-invalid'],
  },
]

async function getCatalog({ app, principal, account, mount, target }: RegistryExchange): Promise<Answer> {
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const page = await listRepositories(app, principal, account.id, { after, limit })
  const last = page.hasMore ? page.items.at(-1) : undefined
  return jsonAnswer(200, { repositories: page.items }, nextPageHeaders(`${mount}/_catalog`, limit, last))
}
