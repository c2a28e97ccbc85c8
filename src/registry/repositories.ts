import { RegistryRefusal } from '../oci/errors.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { Principal } from '../ports/identity.ts'
import type { Tables } from '../ports/metadata-store.ts'
import type { RepositoryKey, RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import { listablePatterns } from './access.ts'
import { type Page, type PageRequest, toPage } from './pages.ts'

type RepositoryTable = Pick<Tables, 'repositories'>

/** Refuses if the repository does not exist. */
export async function getRepository(tables: RepositoryTable, repositoryKey: RepositoryKey): Promise<RepositoryRow> {
  const repository = await tables.repositories.find(repositoryKey)
  if (repository === undefined) throw new RegistryRefusal('name-unknown', { name: repositoryKey.repository })
  return repository
}

/** The account's repositories that the caller may pull from. Every page but the last one is full. */
export async function listRepositories(
  { metadata }: { readonly metadata: RepositoryTable },
  principal: Principal,
  accountId: RowId,
  request: PageRequest & { readonly limit: number },
): Promise<Page<RepositoryName>> {
  if (request.limit === 0) return { items: [], hasMore: false }
  const patterns = listablePatterns(principal)
  return toPage(await metadata.repositories.list(accountId, request.after, request.limit + 1, patterns), request.limit)
}
