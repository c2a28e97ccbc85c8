import { expect, test } from 'bun:test'
import { readAllPages } from '../../../src/lib/paging.ts'

test.each([0, 1, 499, 500, 501, 1_000, 1_001])('a list of %i comes back whole and in its order', async (count) => {
  const all = Array.from({ length: count }, (_, n) => ({ name: `item-${String(n).padStart(5, '0')}` }))
  const asked: (string | undefined)[] = []
  const found = await readAllPages(async (after, limit) => {
    asked.push(after)
    return all.filter(({ name }) => after === undefined || name > after).slice(0, limit)
  })
  expect(found).toEqual(all)
  expect(asked[0]).toBeUndefined()
  expect(asked.length).toBe(Math.floor(count / 500) + 1)
})
