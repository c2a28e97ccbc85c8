import { describe, expect, test } from 'bun:test'
import { TextSealer } from '../../../src/lib/text-sealer.ts'
import { formatEventId, parseEventId } from '../../../src/registry/event-ids.ts'

const sealer = new TextSealer('a secret')
const texts = ['', '7', '1700000000000-12', 'start.end', 'ünïcode \0', 'x'.repeat(1_000)]

describe('a sealed text', () => {
  test.each(texts)('%j is opened again, is always the same, and can be part of an address', (text) => {
    const sealed = sealer.seal(text)
    expect(sealer.open(sealed)).toBe(text)
    expect(sealer.seal(text)).toBe(sealed)
    expect(sealed).toMatch(/^[\w-]{22,}$/)
  })

  test('is refused if one bit of it differs, if it is shortened, and with another secret', () => {
    const bytes = Buffer.from(sealer.seal('1700000000000-12'), 'base64url')
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(sealer.open(changed.toString('base64url'))).toBeUndefined()
    }
    for (let length = 0; length < bytes.length; length += 1) {
      expect(sealer.open(bytes.subarray(0, length).toString('base64url'))).toBeUndefined()
    }
    expect(new TextSealer('another secret').open(bytes.toString('base64url'))).toBeUndefined()
    for (const text of ['17', '1700000000000-12', '\u{1F600}', '%00']) expect(sealer.open(text)).toBeUndefined()
  })

  test('of one number tells nothing about that of the next', () => {
    const sealed = Array.from({ length: 200 }, (_, number) => sealer.seal(String(number)))
    expect(new Set(sealed.map((one) => one.slice(0, 8))).size).toBe(200)
  })
})

test('the id of an event is that of one account', () => {
  const id = formatEventId(sealer, { accountId: 3, position: 12_345 })
  expect(id).toMatch(/^evt_[\w-]+$/)
  expect(parseEventId(sealer, 3, id)).toBe(12_345)
  expect([
    parseEventId(sealer, 4, id),
    parseEventId(sealer, 3, 'evt_12345'),
    parseEventId(sealer, 3, undefined),
  ]).toEqual([undefined, undefined, undefined])
})
