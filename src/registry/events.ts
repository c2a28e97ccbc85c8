import type { RegistryEvent } from '../ports/events.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import { type Page, toPage } from './pages.ts'
import { staysWritable } from './read-only.ts'

type ReadNeeds = { readonly metadata: Pick<MetadataStore, 'events' | 'transaction'> }

/** How many events one transaction numbers, passes on or removes. */
export const eventsAtOnce = 500
const batchesMax = 100

/** The events of the account, the newest first. An event is listed as soon as its change is acknowledged. */
export async function listEvents(
  { metadata }: ReadNeeds,
  accountId: RowId,
  { before, limit }: { readonly before: number | undefined; readonly limit: number },
): Promise<Page<RegistryEvent>> {
  if (limit === 0) return { items: [], hasMore: false }
  await numberEvents({ metadata })
  return toPage(await metadata.events.listBefore(accountId, before, limit + 1), limit)
}

/** Gives positions to the events that have none. With SQLite there are no such events. */
export async function numberEvents({ metadata }: ReadNeeds): Promise<void> {
  for (let batches = 0; batches < batchesMax && (await metadata.events.hasUnnumbered()); batches += 1) {
    const numbered = await metadata.transaction(async (tables) =>
      (await staysWritable(tables)) ? tables.events.number(eventsAtOnce) : 0,
    )
    if (numbered === 0) return
  }
}

/** Removes old events and finished deliveries. Returns how many events. */
export async function removeOldEvents(
  { metadata }: { readonly metadata: Pick<MetadataStore, 'transaction'> },
  { eventsMs, deliveriesMs }: { readonly eventsMs: number; readonly deliveriesMs: number },
  shouldStop: () => boolean,
): Promise<number> {
  let removed = 0
  for (let batches = 0; batches < batchesMax && !shouldStop(); batches += 1) {
    const [events, deliveries] = await metadata.transaction(async (tables) => {
      if (!(await staysWritable(tables))) return [0, 0]
      return [
        await tables.events.removeOld(eventsMs, eventsAtOnce),
        await tables.webhookDeliveries.removeOld(deliveriesMs, eventsAtOnce),
      ]
    })
    removed += events
    if (events < eventsAtOnce && deliveries < eventsAtOnce) break
  }
  return removed
}
