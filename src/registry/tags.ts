import { RegistryRefusal } from '../oci/errors.ts'
import type { Tag } from '../oci/names.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { Scope } from '../ports/repositories.ts'
import { checkStillEnabled } from './accounts.ts'
import { type Page, type PageRequest, toPage } from './pages.ts'
import { getRepository } from './repositories.ts'

type ListNeeds = { readonly metadata: Pick<MetadataStore, 'repositories' | 'tags'> }
type DeleteNeeds = { readonly metadata: Pick<MetadataStore, 'repositories' | 'transaction'> }

/** How many tags are read from the store at once, where all of them are wanted. */
const pageLength = 500

/** In byte order. A repository without tags has an empty list; one that does not exist is refused. */
export async function listTags(
  needs: ListNeeds,
  scope: Scope,
  { after, limit }: PageRequest & { readonly limit: number },
): Promise<Page<Tag>> {
  const repository = await getRepository(needs.metadata, scope)
  if (limit === 0) return { items: [], hasMore: false }
  return toPage(await needs.metadata.tags.list(repository, after, limit + 1), limit)
}

/**
 * All tags after `after`, page by page, so that a list of any length needs little memory. Each page shows the tags of the
 * moment in which it is read.
 */
export async function* readTagPages(
  needs: ListNeeds,
  scope: Scope,
  after: string | undefined,
): AsyncGenerator<Page<Tag>> {
  const repository = await getRepository(needs.metadata, scope)
  let last = after
  for (;;) {
    const page = toPage(await needs.metadata.tags.list(repository, last, pageLength + 1), pageLength)
    last = page.items.at(-1)
    // A page behind the last tag is empty when tags were removed meanwhile.
    if (page.items.length > 0) yield page
    if (!page.hasMore) return
  }
}

/** Removes the tag and nothing else: what it pointed to can still be pulled by digest. */
export async function deleteTag({ metadata }: DeleteNeeds, scope: Scope, tag: Tag): Promise<void> {
  const isRemoved = await metadata.transaction(async (tables) => {
    await checkStillEnabled(tables, scope.accountId)
    return tables.tags.remove(scope, tag)
  })
  if (isRemoved) return
  await getRepository(metadata, scope)
  throw new RegistryRefusal('manifest-unknown', { tag })
}
