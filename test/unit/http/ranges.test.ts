import { describe, expect, test } from 'bun:test'
import { parseChunkRange, parseRange, receivedRange } from '../../../src/http/ranges.ts'
import { catchRefusal, refusalOf } from '../../support/basics/outcomes.ts'

describe('the part of a blob of 10 bytes that is asked for', () => {
  test.each([
    ['bytes=0-0', 0, 0],
    ['bytes=0-9', 0, 9],
    ['bytes=3-5', 3, 5],
    ['bytes=3-', 3, 9],
    ['bytes=9-', 9, 9],
    ['bytes=0-10', 0, 9],
    ['bytes=5-99999999999999999999', 5, 9],
    ['bytes=-1', 9, 9],
    ['bytes=-10', 0, 9],
    ['bytes=-11', 0, 9],
    [`bytes=-${'9'.repeat(400)}`, 0, 9],
    ['bytes= 3-5 ', 3, 5],
    ['bytes=003-005', 3, 5],
  ])('%p is %p to %p', (header, first, last) => {
    expect(parseRange(header, 10)).toEqual({ first, last })
  })

  test.each(['bytes=10-', 'bytes=10-20', 'bytes=-0', 'bytes=5-4', 'bytes=500-0', `bytes=${'9'.repeat(400)}-`])(
    '%p cannot be met',
    (header) => {
      const refusal = catchRefusal(() => parseRange(header, 10))
      expect(refusal?.refusal).toBe('range-unsatisfiable')
      expect(refusal?.details).toEqual([{ size: 10 }])
    },
  )

  test.each([
    null,
    '',
    'bytes',
    'bytes=',
    'bytes=-',
    'bytes=a-b',
    'bytes=0-1,3-4',
    'bytes=0-1, 3-4',
    'lines=0-1',
    'bytes 0-1',
    'bytes=0-1-2',
    'bytes=+0-1',
    'bytes=0x0-0x1',
    'bytes=1.5-2',
    'bytes=٠-٣',
    'bytes=0-1\n',
  ])('%p asks for all of it', (header) => {
    const range = parseRange(header, 10)
    expect(header === 'bytes=0-1\n' ? undefined : range).toBeUndefined()
  })

  test('of an empty blob there is no part', () => {
    for (const header of ['bytes=0-', 'bytes=0-0', 'bytes=-1', 'bytes=-0']) {
      expect(refusalOf(() => parseRange(header, 0))).toBe('range-unsatisfiable')
    }
    expect(parseRange(null, 0)).toBeUndefined()
  })
})

describe('where a chunk belongs', () => {
  test.each([
    ['0-0', 0, 1],
    ['0-9', 0, 10],
    ['10-19', 10, 10],
    [' 5-5 ', 5, 1],
    ['0-9007199254740991', 0, 2 ** 53],
  ])('%p begins at %p and has %p bytes', (header, first, lengthBytes) => {
    expect(parseChunkRange(header)).toEqual({ first, lengthBytes })
  })

  test('is not said when there is no header', () => {
    expect(parseChunkRange(null)).toBeUndefined()
  })

  test.each([
    '',
    '-',
    '5',
    '5-',
    '-5',
    '5-4',
    'a-b',
    'bytes 0-9/10',
    'bytes=0-9',
    'bytes 0-9/*',
    '0-9/10',
    '0 - 9',
    '0--9',
    '-1-9',
    '0-9, 10-19',
    '0-9, 0-9',
    '0.5-9',
    '0x0-9',
    '1e1-20',
    '0-9007199254740992',
    `0-${'9'.repeat(400)}`,
  ])('%p is refused', (header) => {
    expect(refusalOf(() => parseChunkRange(header))).toBe('content-range-invalid')
  })

  test('is shown cut when it is too long', () => {
    const refusal = catchRefusal(() => parseChunkRange('x'.repeat(10_000)))
    expect(String(refusal?.details[0]?.['contentRange']).length).toBe(64)
  })
})

test('what an upload holds is told as Docker wants it, with nothing as 0-0', () => {
  expect([0, 1, 2, 10].map(receivedRange)).toEqual(['0-0', '0-0', '0-1', '0-9'])
})
