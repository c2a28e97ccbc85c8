import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { isWorthAPart, sizeOfPart, usualPlan } from '../../../../src/adapters/blobs-s3/part-buffers.ts'
import { smallPlan } from '../../../support/s3/s3-store.ts'

const mebi = 1024 ** 2
const gibi = 1024 ** 3
const largestObject = 5 * 1024 ** 4
const partsMax = 10_000

/** The first part of such a number that a client's chunks make: they grow in a tail until they are worth a part. */
function sizeWhenSent(number: number, chunkBytes: number, plan = usualPlan): number {
  const max = sizeOfPart(plan, number)
  for (let chunks = Math.max(1, Math.floor(plan.minBytes / chunkBytes)); ; chunks += 1) {
    const gathered = Math.min(max, chunks * chunkBytes)
    if (gathered >= max || isWorthAPart(plan, number, gathered)) return gathered
    // What is smaller than a hundredth of the piece need not be counted one by one.
    chunks += Math.floor(max / chunkBytes / 100)
  }
}

/** How many bytes fit into an object that is sent in chunks of this size, each of them a request of its own. */
function capacity(chunkBytes: number): number {
  let bytes = 0
  for (let number = 1; number <= partsMax; number += 1) bytes += sizeWhenSent(number, chunkBytes)
  return bytes
}

describe('the usual plan', () => {
  test('lets 5 TiB into 10,000 parts, however its client cuts them', () => {
    const chunks = fc.oneof(
      fc.integer({ min: 1, max: 10 * mebi }),
      fc.integer({ min: mebi, max: 5 * gibi }),
      fc.constantFrom(5 * mebi, 5 * mebi - 1, 8 * mebi + 1, gibi, gibi - 1, gibi + 1, 2 * gibi),
    )
    fc.assert(
      fc.property(chunks, (chunkBytes) => {
        expect(capacity(chunkBytes)).toBeGreaterThanOrEqual(largestObject)
      }),
      { numRuns: 60 },
    )
  })

  test('does so even if every piece is cut at the smallest size that is sent', () => {
    const smallest = (number: number): number => Math.max(usualPlan.minBytes, sizeOfPart(usualPlan, number) / 2)
    let bytes = 0
    for (let number = 1; number <= partsMax; number += 1) {
      expect(isWorthAPart(usualPlan, number, smallest(number))).toBe(true)
      expect(isWorthAPart(usualPlan, number, smallest(number) - 1)).toBe(false)
      bytes += smallest(number)
    }

    expect(bytes).toBeGreaterThanOrEqual(largestObject)
  })

  test('has no part that S3 refuses for its size, and none behind the last number that it takes', () => {
    const sizes = Array.from({ length: partsMax }, (_, index) => sizeOfPart(usualPlan, index + 1))

    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(5 * mebi)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(5 * gibi)
    expect(() => sizeOfPart(usualPlan, partsMax + 1)).toThrow('at most 10000 parts')
  })

  test('never lets pieces become smaller', () => {
    for (const plan of [usualPlan, smallPlan]) {
      const sizes = Array.from({ length: partsMax }, (_, index) => sizeOfPart(plan, index + 1))

      expect(sizes.toSorted((one, other) => one - other)).toEqual(sizes)
    }
  })
})

test('pieces of 8 MiB alone would not be enough: the sum that these tests make can fail', () => {
  const plan = { ...usualPlan, steps: [{ parts: partsMax, sizeBytes: 8 * mebi }] }
  let bytes = 0
  for (let number = 1; number <= partsMax; number += 1) bytes += sizeWhenSent(number, 8 * mebi, plan)

  expect(bytes).toBeLessThan(largestObject)
})
