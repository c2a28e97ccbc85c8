import type { Tag } from '../oci/names.ts'
import { compileTagPattern, type TagPattern } from '../oci/tag-pattern.ts'
import type { TaggedNode } from '../ports/deletion-previews.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RepositoryRow } from '../ports/repositories.ts'
import { tagsMax } from './deletion-plan.ts'

/** The tags to delete: named ones, or all that match a pattern, after `after` in byte order. */
export type TagSelection =
  | { readonly tags: readonly Tag[] }
  | { readonly pattern: TagPattern; readonly after: string | undefined }

/** How many tags one request looks at. */
const scannedMax = 20_000
const scannedAtOnce = 500

/** The tags with their manifests. `last`: the last tag that was looked at, if there may be more. */
export async function selectTags(
  { metadata }: { readonly metadata: Pick<MetadataStore, 'deletionPreviews'> },
  repository: RepositoryRow,
  selection: TagSelection,
): Promise<{ readonly tagged: readonly TaggedNode[]; readonly last: Tag | undefined }> {
  const { deletionPreviews } = metadata
  const tagged: TaggedNode[] = []
  if ('tags' in selection) {
    for (const tag of new Set(selection.tags)) {
      const node = await deletionPreviews.findByTag(repository, tag)
      if (node !== undefined) tagged.push({ tag, node })
    }
    return { tagged, last: undefined }
  }
  const matches = compileTagPattern(selection.pattern)
  // Every tag that matches begins with the text before the first wildcard.
  const prefix = /^[^*?[{]*/.exec(selection.pattern)?.[0] ?? ''
  let after = selection.after ?? ''
  // `prefix` itself can be a tag, and comes before all others that begin with it.
  if (after < prefix) {
    const node = matches(prefix) ? await deletionPreviews.findByTag(repository, prefix as Tag) : undefined
    if (node !== undefined) tagged.push({ tag: prefix as Tag, node })
    after = prefix
  }
  for (let scanned = 0; ; ) {
    const page = await deletionPreviews.listTagged(repository, after, scannedAtOnce)
    for (const one of page) {
      if (!one.tag.startsWith(prefix)) return { tagged, last: undefined }
      if (matches(one.tag)) tagged.push(one)
      if (tagged.length >= tagsMax) return { tagged, last: one.tag }
    }
    scanned += page.length
    after = page.at(-1)?.tag ?? after
    if (page.length < scannedAtOnce) return { tagged, last: undefined }
    if (scanned >= scannedMax) return { tagged, last: after as Tag }
  }
}
