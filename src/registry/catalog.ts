import type { RepositoryName } from '../oci/names.ts'
import type { Principal } from '../ports/identity.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import { isAllowed } from './access.ts'
import type { Page, PageRequest } from './pages.ts'

type Needs = { readonly metadata: Pick<MetadataStore, 'repositories'> }

/** The account's repositories that the caller may pull from. A page is full, or it is the last. */
export async function listRepositories(
  { metadata }: Needs,
  principal: Principal,
  accountId: RowId,
  request: PageRequest & { readonly limit: number },
): Promise<Page<RepositoryName>> {
  if (request.limit === 0) return { items: [], hasMore: false }
  const items: RepositoryName[] = []
  let after = request.after
  for (;;) {
    const wanted = request.limit + 1 - items.length
    const names = await metadata.repositories.list(accountId, after, wanted)
    items.push(...names.filter((name) => isAllowed(principal, 'pull', name)))
    if (items.length > request.limit) return { items: items.slice(0, request.limit), hasMore: true }
    if (names.length < wanted) return { items, hasMore: false }
    after = names.at(-1)
  }
}
