import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { freshName } from '../../../../src/adapters/blobs-s3/object-names.ts'
import { emptyState, formatNotes, parseNotes, totalBytes } from '../../../../src/adapters/blobs-s3/upload-state.ts'
import { freshKey } from '../../../support/stores/stored-objects.ts'

const names = fc.constant(undefined).map(() => freshName(freshKey()))
const sizes = fc.integer({ min: 1, max: 5 * 1024 ** 3 })
const parts = fc.array(fc.record({ etag: fc.string(), sizeBytes: sizes }), { maxLength: 20 })
const notes = fc.record({
  multipart: fc.option(fc.record({ key: names, uploadId: fc.string({ minLength: 1 }), parts }), { nil: undefined }),
  tails: fc.array(fc.record({ key: names, sizeBytes: sizes }), { maxLength: 5 }),
  replaced: fc.array(names, { maxLength: 5 }),
})

test('notes are parsed as they were written, and tell the size of all parts and tails', () => {
  expect([parseNotes(undefined), totalBytes(emptyState)]).toEqual([emptyState, 0])
  fc.assert(
    fc.property(notes, (written) => {
      expect(parseNotes(formatNotes(written))).toEqual(written)
      const stored = [...(written.multipart?.parts ?? []), ...written.tails]
      expect(totalBytes(written)).toBe(stored.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0))
    }),
  )
})

test('notes are those of other versions, because servers of two versions share rows', () => {
  const [key, tail, last, old] = [freshKey(), freshKey(), freshKey(), freshKey()]
  const text = `{"name":"${key}","id":"u","parts":[["\\"e\\"",7]],"tail":["${tail}",5],"old":["${old}"]}`
  const written = {
    multipart: { key, uploadId: 'u', parts: [{ etag: '"e"', sizeBytes: 7 }] },
    tails: [{ key: tail, sizeBytes: 5 }],
    replaced: [old],
  }

  expect(parseNotes(text)).toEqual(written)
  expect(formatNotes(written)).toBe(text)
  expect(parseNotes(`{"tail":["${tail}",5,"${last}",2]}`).tails).toEqual([
    { key: tail, sizeBytes: 5 },
    { key: last, sizeBytes: 2 },
  ])
})

test('notes of as many parts as there can be fit into a megabyte, checksums included', () => {
  const part = { etag: `"${'f'.repeat(32)}" crc32=AAAAAA==`, sizeBytes: 2_147_483_648 }
  const key = freshName(freshKey())
  const multipart = { key, uploadId: 'x'.repeat(128), parts: Array.from({ length: 10_000 }, () => part) }

  expect(formatNotes({ multipart, tails: [], replaced: [] }).length).toBeLessThan(1024 * 1024)
})
