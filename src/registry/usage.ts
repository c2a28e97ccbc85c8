import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import type { AccountChange, UsagePosition } from '../ports/usage.ts'
import { staysWritable } from './read-only.ts'

type FoldNeeds = { readonly metadata: Pick<MetadataStore, 'transaction' | 'usage'> }
type CountNeeds = { readonly metadata: Pick<MetadataStore, 'transaction' | 'marks' | 'usageRecount'> }

/** How many changes one transaction folds, and how many blobs one transaction counts. */
const changesAtOnce = 500
const blobsAtOnce = 200

/** How many transactions one call has. The next call continues. */
const foldsMax = 200
const countsMax = 50

/** Adds the recorded changes to the sums of repositories and accounts. Calls `note` for each change of an account. */
export async function foldUsage(
  { metadata }: FoldNeeds,
  shouldStop: () => boolean = () => false,
  note: (change: AccountChange) => void = () => undefined,
): Promise<number> {
  let folded = 0
  for (let folds = 0; folds < foldsMax && !shouldStop(); folds += 1) {
    // Most calls find nothing, and must not start a transaction.
    if (!(await metadata.usage.hasChanges())) break
    const { count, accounts } = await metadata.transaction(
      async (tables) => ((await staysWritable(tables)) ? tables.usage.fold(changesAtOnce) : { count: 0, accounts: [] }),
      // A fold that is lost after a power failure is repeated.
      { mayBeLost: true },
    )
    for (const change of accounts) note(change)
    folded += count
    if (count < changesAtOnce) break
  }
  return folded
}

/**
 * Counts what exists since before usage was recorded: first blobs, then repositories. A mark records where the next call
 * continues, on any server. The mark is removed at the end. Returns whether there is more to count.
 */
export async function countExisting(
  { metadata }: CountNeeds,
  shouldStop: () => boolean = () => false,
): Promise<boolean> {
  for (let counts = 0; counts < countsMax && !shouldStop(); counts += 1) {
    const position = parseUsagePosition(await metadata.marks.find('usage'))
    if (position === undefined) return false
    const after = position.of === 'repositories' ? await metadata.usageRecount.recountNext(position.after) : undefined
    const isDone = await metadata.transaction(async (tables) => {
      if (!(await staysWritable(tables))) return true
      const next = position.of === 'blobs' ? await countNextBlobs(tables, position.after) : toRepositories(after)
      if (next === undefined) await tables.marks.remove('usage')
      else await tables.marks.set('usage', `${next.of} ${next.after}`)
      return false
    })
    if (isDone) return true
  }
  return true
}

async function countNextBlobs({ usage }: Pick<Tables, 'usage'>, from: RowId): Promise<UsagePosition> {
  const after = await usage.countBlobs(from, blobsAtOnce)
  return after === undefined ? { of: 'repositories', after: 0 } : { of: 'blobs', after }
}

function toRepositories(after: RowId | undefined): UsagePosition | undefined {
  return after === undefined ? undefined : { of: 'repositories', after }
}

/** Whether existing content is still being counted, so that the numbers are too small. */
export async function isCountingUsage({
  metadata,
}: {
  readonly metadata: Pick<MetadataStore, 'marks'>
}): Promise<boolean> {
  return (await metadata.marks.find('usage')) !== undefined
}

/** A text that is no position means the beginning. */
function parseUsagePosition(text: string | undefined): UsagePosition | undefined {
  if (text === undefined) return undefined
  const [, of, after] = /^(blobs|repositories) (\d{1,15})$/.exec(text) ?? []
  return { of: of === 'repositories' ? 'repositories' : 'blobs', after: Number(after ?? 0) }
}
