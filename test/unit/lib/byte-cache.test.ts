import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { ByteCache } from '../../../src/lib/byte-cache.ts'

const bytesMax = 1_300
const sizes = fc.constantFrom(0, 0, 1, 200, 300, 400, bytesMax - 256, bytesMax)
/** Bytes to store under a key, or nothing where the key is only read. */
const step = fc.tuple(fc.integer({ min: 1, max: 7 }).map(String), fc.option(sizes, { nil: undefined }))

test('a cache of bytes has what was used last, in so many bytes, where each entry has 256 more', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 100 }), (steps) => {
      const cache = new ByteCache(bytesMax)
      const model = new Map<string, Uint8Array>()
      for (const [key, size] of steps) {
        const bytes = size === undefined ? model.get(key) : new Uint8Array(size)
        if (size === undefined) expect(cache.get(key)).toBe(bytes)
        else if (bytes !== undefined) cache.set(key, bytes)
        model.delete(key)
        if (bytes !== undefined) model.set(key, bytes)
        const cost = () => [...model.values()].reduce((sum, { length }) => sum + length + 256, 0)
        for (const oldest of model.keys()) if (cost() > bytesMax) model.delete(oldest)
      }
      expect([...model.keys()].filter((key) => cache.get(key) !== model.get(key))).toEqual([])
    }),
  )
})
