import { RegistryRefusal } from '../oci/errors.ts'
import type { Tag } from '../oci/names.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { Scope } from '../ports/repositories.ts'
import { type Page, type PageRequest, toPage } from './pages.ts'
import { checkStillEnabled } from './service.ts'

type ListNeeds = { readonly metadata: Pick<MetadataStore, 'repositories' | 'tags'> }
type DeleteNeeds = { readonly metadata: Pick<MetadataStore, 'repositories' | 'transaction'> }

/** In byte order. A repository without tags has an empty list; one that does not exist is refused. */
export async function listTags({ metadata }: ListNeeds, scope: Scope, request: PageRequest): Promise<Page<Tag>> {
  const repository = await metadata.repositories.find(scope)
  if (repository === undefined) throw new RegistryRefusal('name-unknown', { name: scope.repository })
  if (request.limit === 0) return { items: [], hasMore: false }
  if (request.limit === undefined) {
    return { items: await metadata.tags.list(repository, request.after, undefined), hasMore: false }
  }
  return toPage(await metadata.tags.list(repository, request.after, request.limit + 1), request.limit)
}

/** Removes the tag and nothing else: what it pointed to can still be pulled by digest. */
export async function deleteTag({ metadata }: DeleteNeeds, scope: Scope, tag: Tag): Promise<void> {
  const isRemoved = await metadata.transaction(async (tables) => {
    await checkStillEnabled(tables, scope.accountId)
    return tables.tags.remove(scope, tag)
  })
  if (isRemoved) return
  const repository = await metadata.repositories.find(scope)
  if (repository === undefined) throw new RegistryRefusal('name-unknown', { name: scope.repository })
  throw new RegistryRefusal('manifest-unknown', { tag })
}
