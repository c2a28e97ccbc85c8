import type { TextSealer } from '../lib/text-sealer.ts'
import type { RegistryEvent } from '../ports/events.ts'
import type { RowId } from '../ports/row-id.ts'

/**
 * The id of an event: the same in the list, in every delivery, and as the place where a list continues. It is sealed, because
 * positions are counted for all accounts together, and would tell how much others do.
 */
export function formatEventId(
  sealer: Pick<TextSealer, 'seal'>,
  { accountId, position }: Pick<RegistryEvent, 'accountId' | 'position'>,
): string {
  return `evt_${sealer.seal(`${accountId}-${position}`)}`
}

/** The position of the event. Undefined if this is no id of an event of the account. */
export function parseEventId(
  sealer: Pick<TextSealer, 'open'>,
  accountId: RowId,
  id: string | undefined,
): number | undefined {
  const [owner, position] = (sealer.open(id?.replace(/^evt_/, '') ?? '') ?? '').split('-')
  return owner === String(accountId) && position !== undefined ? Number(position) : undefined
}
