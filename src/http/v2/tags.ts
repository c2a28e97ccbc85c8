import { listTags } from '../../registry/tags.ts'
import { type Answer, jsonAnswer, type RepositoryExchange } from '../exchange.ts'
import { nextPage } from '../links.ts'
import { parsePage } from '../pages.ts'

/** GET /v2/{name}/tags/list - all tags, unless `n` asks for a page. */
export async function getTagsList({ app, scope, mount, target }: RepositoryExchange): Promise<Answer> {
  const request = parsePage(target.query, app.settings.pageMax)
  const page = await listTags(app, scope, request)
  const last = page.items.at(-1)
  const link = page.hasMore && last !== undefined
  return jsonAnswer(
    200,
    { name: scope.repository, tags: page.items },
    link ? { link: nextPage(`${mount}/${scope.repository}/tags/list`, { n: String(request.limit), last }) } : {},
  )
}
