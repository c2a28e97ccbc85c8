import type { RowId } from '../../../ports/row-id.ts'

/** What a look for many digests gives for each: its row, or null. */
export interface FoundRow {
  readonly digest: string
  readonly id: number | null
}

export function toFound(rows: readonly FoundRow[]): ReadonlyMap<string, RowId> {
  return new Map(rows.flatMap(({ digest, id }) => (id === null ? [] : [[digest, id] as const])))
}
