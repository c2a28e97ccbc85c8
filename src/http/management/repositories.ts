import { formatTime } from '../../lib/quantities.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import type { ListedRepository } from '../../ports/usage.ts'
import { isAllowed } from '../../registry/access.ts'
import { describeRepository, listRepositoryUsage, type RepositoryQuery } from '../../registry/repository-lists.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RegistryExchange, RepositoryExchange } from '../exchange.ts'
import { repositoriesPath } from '../mounts.ts'
import { nextPageLink, openPosition, parsePage } from '../paging.ts'
import { json, type Route } from '../route.ts'

export const repositoryListRoutes: readonly Route[] = [
  {
    operationId: 'getRepositories',
    method: 'GET',
    pattern: repositoriesPath,
    access: 'enabled account',
    right: 'pull',
    handle: listRepositories,
    summary: 'List the repositories that the caller may pull from',
    description:
      'With the numbers of their tags, manifests and bytes, which may be some seconds old. A request looks at a part of the repositories, so a page can have fewer entries than `n`, or none, although `Link` leads to more.',
    parameters: ['search', 'repositorySort', 'n', 'last'],
    answers: {
      200: { description: 'The repositories.', headers: { Link: 'sometimes' }, content: json('RepositoriesResponse') },
    },
    refusals: ['page-size-invalid', 'sort-invalid'],
  },
]

/** To be the last of all routes below `/repositories/`: a name in the path may contain anything. */
export const repositoryDetailRoutes: readonly Route[] = [
  {
    operationId: 'getRepository',
    method: 'GET',
    pattern: `${repositoriesPath}/{name}`,
    access: 'repository',
    right: 'pull',
    handle: getRepository,
    summary: 'Get the numbers of a repository',
    answers: { 200: { description: 'The repository.', content: json('RepositoryResponse') } },
    refusals: ['name-unknown'],
  },
]

const orders = ['name', 'size', 'pushed', 'pulled'] as const

async function listRepositories({ app, principal, account, target }: RegistryExchange): Promise<Answer> {
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const search = target.query.get('search') ?? ''
  const order = parseOrder(target.query.get('sort') ?? 'name')
  // Names are no secret of others. The other orders continue at the number of a row.
  const isByName = order === 'name'
  const query = { search, order, after: isByName ? after : openPosition(app, after), limit: Math.max(1, limit) }
  const page = await listRepositoryUsage(app, (name) => isAllowed(principal, 'pull', name), account.id, query)
  const again = { n: String(limit), sort: order, ...(search === '' ? {} : { search }) }
  const last = page.next && (isByName ? page.next : app.sealer.seal(page.next))
  const link = last && nextPageLink(repositoriesPath, { ...again, last })
  return jsonAnswer(200, { repositories: limit === 0 ? [] : page.repositories.map(show) }, link ? { link } : {})
}

function parseOrder(text: string): RepositoryQuery['order'] {
  const order = orders.find((one) => one === text)
  if (order === undefined) throw new RegistryRefusal('sort-invalid', { sort: text.slice(0, 32) })
  return order
}

async function getRepository({ app, repositoryKey }: RepositoryExchange): Promise<Answer> {
  return jsonAnswer(200, show(await describeRepository(app, repositoryKey)))
}

function show(repository: Omit<ListedRepository, 'id' | 'createdAt'>) {
  const { name, tags, manifests, bytes, ownedBytes, pushedAt, pulledAt } = repository
  return {
    name,
    tags,
    manifests,
    bytes,
    ownedBytes,
    sharedBytes: bytes - ownedBytes,
    pushedAt: formatTime(pushedAt),
    pulledAt: formatTime(pulledAt),
  }
}
