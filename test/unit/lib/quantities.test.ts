// More texts and units are in test/fuzz/settings.test.ts.
import { expect, test } from 'bun:test'
import { formatBytes, parseByteCount, parseDuration } from '../../../src/lib/quantities.ts'

test('a duration is a whole number with a unit, or seconds', () => {
  const good = { '0': 0, '5': 5_000, '250ms': 250, '24h': 86_400_000, ' 10 s ': 10_000, '007s': 7_000 }
  for (const [text, milliseconds] of Object.entries(good))
    expect([text, parseDuration(text)]).toEqual([text, milliseconds])
  // More of them: `a duration` in test/unit/app/setting-kinds.test.ts.
  const bad = ['', ' ', 's', '+5s', '1e3s', '5S', '5 min', '5s 5s', '0x10', '٣s', '5toString', '5constructor']
  for (const text of bad) expect([text, parseDuration(text)]).toEqual([text, undefined])
})

test('an amount of bytes is a whole number with a binary unit, or bytes', () => {
  const good = { '0': 0, '512': 512, '1B': 1, '50GiB': 53_687_091_200, '1 TiB': 1_099_511_627_776 }
  for (const [text, bytes] of Object.entries(good)) expect([text, parseByteCount(text)]).toEqual([text, bytes])
  for (const text of ['', '4MB', '4mib', '4M', '1.5MiB', '-1B', 'MiB', '4MiBMiB', '9999999TiB']) {
    expect([text, parseByteCount(text)]).toEqual([text, undefined])
  }
})

test('a quantity that is too large to be counted is none', () => {
  expect(parseDuration('9007199254740991ms')).toBe(Number.MAX_SAFE_INTEGER)
  expect(parseDuration('9007199254740992ms')).toBeUndefined()
  expect(parseDuration(`${'9'.repeat(400)}d`)).toBeUndefined()
})

test('bytes are shown in the largest unit of which there is at least one', () => {
  expect([0, 1023, 1024, 1536, 4_194_304, 53_687_091_200, 1024 ** 4].map(formatBytes)).toEqual([
    '0 B',
    '1023 B',
    '1.0 KiB',
    '1.5 KiB',
    '4.0 MiB',
    '50.0 GiB',
    '1.0 TiB',
  ])
})
