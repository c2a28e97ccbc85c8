import { expect, test } from 'bun:test'
import { isWorthAPart, type PartPlan, sizeOfPart, usualPlan } from '../../../../src/adapters/blobs-s3/part-buffers.ts'
import { smallPlan } from '../../../support/s3/s3-store.ts'

const mebi = 1024 ** 2
const largestObject = 5 * 1024 ** 4
const partsMax = 10_000
const numbers = Array.from({ length: partsMax }, (_, index) => index + 1)

/** The bytes that fit into an object if a client cuts every part at the smallest size that is sent. */
function capacityOf(plan: PartPlan): number {
  const smallest = (number: number): number => {
    const sizeBytes = Math.max(plan.minBytes, sizeOfPart(plan, number) / 2)
    expect([sizeBytes, sizeBytes - 1].map((size) => isWorthAPart(plan, number, size))).toEqual([true, false])
    return sizeBytes
  }
  return numbers.reduce((sum, number) => sum + smallest(number), 0)
}

test('5 TiB fit into 10,000 parts of the usual plan, however a client cuts them', () => {
  expect(capacityOf(usualPlan)).toBeGreaterThanOrEqual(largestObject)
  // The control: parts of 8 MiB alone are not enough.
  expect(capacityOf({ ...usualPlan, steps: [{ parts: partsMax, sizeBytes: 8 * mebi }] })).toBeLessThan(largestObject)
})

test('no part has a size or a number that S3 rejects, and parts never become smaller', () => {
  for (const plan of [usualPlan, smallPlan]) {
    const sizes = numbers.map((number) => sizeOfPart(plan, number))
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(5 * mebi)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(5 * 1024 ** 3)
    expect(sizes.toSorted((one, other) => one - other)).toEqual(sizes)
    expect(() => sizeOfPart(plan, partsMax + 1)).toThrow('at most 10000 parts')
  }
})
