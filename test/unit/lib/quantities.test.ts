import { describe, expect, test } from 'bun:test'
import { formatBytes, parseByteCount, parseDuration } from '../../../src/lib/quantities.ts'

describe('a length of time', () => {
  test.each([
    ['0', 0],
    ['5', 5_000],
    ['250ms', 250],
    ['30s', 30_000],
    ['5m', 300_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    [' 10 s ', 10_000],
    ['007s', 7_000],
  ])('%p is %p ms', (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds)
  })

  test.each([
    '',
    ' ',
    's',
    '-5s',
    '+5s',
    '1.5h',
    '1e3s',
    '5S',
    '5 min',
    '5s 5s',
    '0x10',
    '٣s',
    '5toString',
    '5constructor',
  ])('%p is none', (text) => {
    expect(parseDuration(text)).toBeUndefined()
  })

  test('beyond counting is none', () => {
    expect(parseDuration('9007199254740991ms')).toBe(Number.MAX_SAFE_INTEGER)
    expect(parseDuration('9007199254740992ms')).toBeUndefined()
    expect(parseDuration(`${'9'.repeat(400)}d`)).toBeUndefined()
  })
})

describe('an amount of bytes', () => {
  test.each([
    ['0', 0],
    ['512', 512],
    ['1B', 1],
    ['4MiB', 4_194_304],
    ['50GiB', 53_687_091_200],
    ['1 TiB', 1_099_511_627_776],
  ])('%p is %p', (text, bytes) => {
    expect(parseByteCount(text)).toBe(bytes)
  })

  test.each(['', '4MB', '4mib', '4M', '1.5MiB', '-1B', 'MiB', '4MiBMiB', '9999999TiB'])('%p is none', (text) => {
    expect(parseByteCount(text)).toBeUndefined()
  })

  test.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.0 KiB'],
    [1536, '1.5 KiB'],
    [4_194_304, '4.0 MiB'],
    [53_687_091_200, '50.0 GiB'],
    [1024 ** 4, '1.0 TiB'],
  ])('%p is shown as %p', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text)
  })
})
