import { listRepositories } from '../../registry/catalog.ts'
import { type Answer, jsonAnswer, type RegistryExchange } from '../exchange.ts'
import { nextPage } from '../links.ts'
import { parsePage } from '../pages.ts'

/** GET /v2/_catalog */
export async function getCatalog({ app, principal, account, mount, target }: RegistryExchange): Promise<Answer> {
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const page = await listRepositories(app, principal, account.id, { after, limit })
  const last = page.items.at(-1)
  const link = page.hasMore && last !== undefined
  return jsonAnswer(
    200,
    { repositories: page.items },
    link ? { link: nextPage(`${mount}/_catalog`, { n: String(limit), last }) } : {},
  )
}
