import { expect, test } from 'bun:test'
import { ByteCache } from '../../../src/lib/byte-cache.ts'

const kibi = 1024

test('a cache of bytes returns what was stored', () => {
  const cache = new ByteCache(10 * kibi)
  const bytes = new Uint8Array([1, 2, 3])
  cache.set('key', bytes)

  expect([cache.get('key'), cache.get('other')]).toEqual([bytes, undefined])
})

test('a cache that is full drops the bytes that were used least recently', () => {
  const cache = new ByteCache(10 * kibi)
  for (const key of ['one', 'two', 'three']) cache.set(key, new Uint8Array(3 * kibi - 256))
  cache.get('one')
  cache.set('four', new Uint8Array(3 * kibi - 256))

  expect(['one', 'two', 'three', 'four'].filter((key) => cache.get(key) !== undefined)).toEqual([
    'one',
    'three',
    'four',
  ])
})

test('bytes that are larger than the whole cache are not kept', () => {
  const cache = new ByteCache(kibi)
  cache.set('large', new Uint8Array(2 * kibi))

  expect(cache.get('large')).toBeUndefined()
})

test('a key that is stored again counts once', () => {
  const cache = new ByteCache(10 * kibi)
  cache.set('other', new Uint8Array(kibi))
  for (let at = 0; at < 100; at += 1) cache.set('key', new Uint8Array(4 * kibi))

  expect([cache.get('key')?.length, cache.get('other')?.length]).toEqual([4 * kibi, kibi])
})

test('many empty values are limited too', () => {
  const cache = new ByteCache(kibi)
  for (let at = 0; at < 100; at += 1) cache.set(String(at), new Uint8Array())

  expect(
    Array.from({ length: 100 }, (_, at) => cache.get(String(at))).filter((bytes) => bytes !== undefined),
  ).toHaveLength(4)
})
