import type { RepositoryName } from '../oci/names.ts'
import type { Principal } from '../ports/identity.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import { findListable } from './access.ts'
import { type Page, type PageRequest, toPage } from './pages.ts'

type Needs = { readonly metadata: Pick<MetadataStore, 'repositories'> }

/** The account's repositories that the caller may pull from. A page is full, or it is the last. */
export async function listRepositories(
  { metadata }: Needs,
  principal: Principal,
  accountId: RowId,
  request: PageRequest & { readonly limit: number },
): Promise<Page<RepositoryName>> {
  if (request.limit === 0) return { items: [], hasMore: false }
  const within = findListable(principal)
  return toPage(await metadata.repositories.list(accountId, request.after, request.limit + 1, within), request.limit)
}
