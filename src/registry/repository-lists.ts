import type { RepositoryName } from '../oci/names.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RepositoryKey } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import type { ListedPart, ListedRepository, RepositoryOrder, RepositoryPosition } from '../ports/usage.ts'
import { formatPosition, parsePosition } from './pages.ts'
import { getRepository } from './repositories.ts'

type Needs = { readonly metadata: Pick<MetadataStore, 'usage'> }
type DescribeNeeds = { readonly metadata: Pick<MetadataStore, 'usage' | 'repositories' | 'pulls'> }

export interface RepositoryQuery {
  /** A part of the name. Empty: all repositories. */
  readonly search: string
  readonly order: 'name' | RepositoryOrder
  /** `next` of the page before. */
  readonly after: string | undefined
  readonly limit: number
}

export interface RepositoryPage {
  readonly repositories: readonly ListedRepository[]
  /** Where the next page begins. A page may have fewer entries than its limit, or none, although there are more. */
  readonly next: string | undefined
}

/**
 * How many rows one request looks at. No index finds a part of a name, so a search reads all names, a part of them for each
 * request.
 */
const rowsAtOnce = 500
const readsMax = 8

/** The repositories of the account that the caller may pull from and whose name contains `search`. */
export async function listRepositoryUsage(
  { metadata }: Needs,
  mayPull: (name: RepositoryName) => boolean,
  accountId: RowId,
  query: RepositoryQuery,
): Promise<RepositoryPage> {
  const found: ListedRepository[] = []
  let after = query.after
  for (let reads = 0; reads < readsMax; reads += 1) {
    const part = await readPart(metadata.usage, accountId, query.order, after)
    for (const repository of part.repositories) {
      if (!repository.name.includes(query.search) || !mayPull(repository.name)) continue
      if (found.length >= query.limit) return { repositories: found, next: after }
      found.push(repository)
      after = positionOf(repository, query.order)
    }
    after = part.next
    if (after === undefined) break
  }
  return { repositories: found, next: after }
}

async function readPart(
  usage: MetadataStore['usage'],
  accountId: RowId,
  order: RepositoryQuery['order'],
  after: string | undefined,
): Promise<ListedPart<string>> {
  if (order === 'name') return usage.listByName(accountId, after, rowsAtOnce)
  const position = parsePosition<RepositoryPosition>(after, (value, id) => ({ value, id }))
  const { repositories, next } = await usage.listBy(order, accountId, position, rowsAtOnce)
  return { repositories, next: next && formatPosition(next.value, next.id) }
}

function positionOf(repository: ListedRepository, order: RepositoryQuery['order']): string {
  if (order === 'name') return repository.name
  const value = { size: repository.bytes, pushed: repository.pushedAt, pulled: repository.pulledAt }[order]
  return formatPosition(value ?? 0, repository.id)
}

export interface RepositoryReport extends Omit<ListedRepository, 'id' | 'createdAt'> {}

/** One repository, with all committed changes. Refuses if it does not exist. */
export async function describeRepository(
  { metadata }: DescribeNeeds,
  repositoryKey: RepositoryKey,
): Promise<RepositoryReport> {
  const repository = await getRepository(metadata, repositoryKey)
  const usage = await metadata.usage.findOfRepository(repository)
  return {
    name: repositoryKey.repository,
    ...usage,
    pulledAt: await metadata.pulls.findOfRepository(repository),
  }
}
