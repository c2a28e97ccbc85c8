import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import type { OwnUpload } from '../ports/uploads.ts'
import type { AccountUsage, WaitingBytes } from '../ports/usage.ts'
import type { Page } from './pages.ts'
import { isCountingUsage } from './usage.ts'

type StorageNeeds = { readonly metadata: Pick<MetadataStore, 'usage' | 'uploads' | 'marks'> }
type UploadNeeds = { readonly metadata: Pick<MetadataStore, 'uploads'> }

export interface UnfinishedUploads {
  readonly count: number
  readonly bytes: number
  /** False if there are more than were looked at. */
  readonly isExact: boolean
}

/** What an account stores. */
export interface StorageReport extends AccountUsage {
  readonly waiting: WaitingBytes
  readonly uploads: UnfinishedUploads
  /** Content that is older than the records of usage is being counted, so the numbers are too small. */
  readonly isCounting: boolean
}

/** How many blobs that may wait for their collection, and how many sessions, one report looks at. */
const waitingMax = 5_000
const sessionsMax = 5_000

/** How many sessions one statement looks at, and how many statements one request has. */
const sessionsAtOnce = 500
const readsMax = 10

export async function describeStorage({ metadata }: StorageNeeds, accountId: RowId): Promise<StorageReport> {
  const usage = await metadata.usage.findOfAccount(accountId)
  const waiting = await metadata.usage.findWaiting(accountId, waitingMax)
  const uploads = await metadata.uploads.measureOpen(accountId, sessionsMax)
  return { ...usage, waiting, uploads, isCounting: await isCountingUsage({ metadata }) }
}

/**
 * The unfinished uploads of the account, by their ids. Looks at a part of the sessions, of which most may be finished. So a
 * page may have fewer entries than its limit, or none, although there are more.
 */
export async function listUploads(
  { metadata }: UploadNeeds,
  accountId: RowId,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<Page<OwnUpload> & { readonly next: string | undefined }> {
  const items: OwnUpload[] = []
  let next = after ?? ''
  for (let reads = 0; reads < readsMax; reads += 1) {
    const part = await metadata.uploads.listOfAccount(accountId, next, sessionsAtOnce)
    for (const upload of part.uploads) {
      if (items.length === limit) return { items, hasMore: true, next }
      items.push(upload)
      next = upload.id
    }
    if (part.next === undefined) return { items, hasMore: false, next: undefined }
    next = part.next
  }
  return { items, hasMore: true, next }
}
