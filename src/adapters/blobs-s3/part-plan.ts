/** How large the pieces are that an object is sent in, by their number: S3 takes 10,000 of them, of up to 5 GiB each. */
export interface PartPlan {
  /** Ascending; the last one has no end. */
  readonly steps: readonly { readonly parts: number; readonly sizeBytes: number }[]
  /** What S3 takes for a part that is not the last. */
  readonly minBytes: number
  /** Larger pieces are gathered in a file, not in memory. */
  readonly memoryMax: number
}

const mebi = 1024 * 1024

/**
 * Small pieces at first, so that small layers need little memory; and from 55 GB of one blob on pieces of 2 GiB, so that
 * 5 TiB fit even if every piece is cut short at half its size by a client that sends chunks.
 */
export const usualPlan: PartPlan = {
  steps: [
    { parts: 1_000, sizeBytes: 8 * mebi },
    { parts: 3_000, sizeBytes: 16 * mebi },
    { parts: 6_000, sizeBytes: 2_048 * mebi },
  ],
  minBytes: 5 * mebi,
  memoryMax: 16 * mebi,
}

/** The size of the part with this number, counted from 1. */
export function sizeOfPart({ steps }: PartPlan, number: number): number {
  let last = 0
  for (const step of steps) {
    last += step.parts
    if (number <= last) return step.sizeBytes
  }
  throw new Error(`an object has at most ${last} parts`)
}

/** Whether a piece that a pause has cut short may be sent as it is, or has to wait for more bytes in a tail. */
export function isWorthAPart(plan: PartPlan, number: number, sizeBytes: number): boolean {
  return sizeBytes >= Math.max(plan.minBytes, sizeOfPart(plan, number) / 2)
}
