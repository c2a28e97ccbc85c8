import { RegistryRefusal } from '../oci/errors.ts'
import type { Tag } from '../oci/names.ts'
import type { Actor } from '../ports/actor.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RepositoryKey } from '../ports/repositories.ts'
import { checkStillOpen } from './accounts.ts'
import { checkMutable } from './immutable-tags.ts'
import { type Page, type PageRequest, toPage } from './pages.ts'
import { getRepository } from './repositories.ts'

type ListNeeds = { readonly metadata: Pick<MetadataStore, 'repositories' | 'tags'> }
type DeleteNeeds = { readonly metadata: Pick<MetadataStore, 'repositories' | 'transaction'> }

/** How many tags are read at once if the client has set no limit. */
const pageLength = 500

/** In byte order. The list of a repository without tags is empty. Refuses if the repository does not exist. */
export async function listTags(
  needs: ListNeeds,
  repositoryKey: RepositoryKey,
  { after, limit }: PageRequest & { readonly limit: number },
): Promise<Page<Tag>> {
  const repository = await getRepository(needs.metadata, repositoryKey)
  if (limit === 0) return { items: [], hasMore: false }
  return toPage(await needs.metadata.tags.list(repository, after, limit + 1), limit)
}

/**
 * All tags after `after`, in pages, so that a list of any length needs little memory. Each page is one consistent read.
 */
export async function* readTagPages(
  needs: ListNeeds,
  repositoryKey: RepositoryKey,
  after: string | undefined,
): AsyncGenerator<Page<Tag>> {
  const repository = await getRepository(needs.metadata, repositoryKey)
  let last = after
  for (;;) {
    const page = toPage(await needs.metadata.tags.list(repository, last, pageLength + 1), pageLength)
    last = page.items.at(-1)
    // The last page is empty if tags were removed after the page before was read.
    if (page.items.length > 0) yield page
    if (!page.hasMore) return
  }
}

/**
 * Removes the tag. Its manifest can still be pulled by digest. Refuses if the tag is immutable, unless the caller may delete
 * such tags.
 */
export async function deleteTag(
  { metadata }: DeleteNeeds,
  repositoryKey: RepositoryKey,
  tag: Tag,
  actor: Actor,
  mayDeleteImmutable = false,
): Promise<void> {
  const isRemoved = await metadata.transaction(async (tables) => {
    const account = await checkStillOpen(tables, repositoryKey.accountId)
    const isFound = await tables.tags.remove(repositoryKey, tag, { actor, cause: 'tag deleted' })
    if (isFound && !mayDeleteImmutable) await checkMutable(tables, { account, repositoryKey }, [tag])
    return isFound
  })
  if (isRemoved) return
  await getRepository(metadata, repositoryKey)
  throw new RegistryRefusal('manifest-unknown', { tag })
}
