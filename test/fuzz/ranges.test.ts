import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { nextPageLink, parsePage } from '../../src/http/paging.ts'
import { parseChunkRange, parseRange } from '../../src/http/ranges.ts'
import { anyText, check, piecesOf } from '../support/basics/fuzzing.ts'
import { refusalOf } from '../support/basics/outcomes.ts'

const position = fc.oneof(fc.nat(12), fc.nat(), fc.constantFrom(2 ** 53 - 1, 2 ** 53, 1e21))
const digits = position.map((number) => (number > 1e20 ? '9'.repeat(30) : String(number)))
const optionalDigits = fc.oneof(fc.constant(''), digits)
const nearRange = fc.oneof(
  piecesOf(['bytes', '=', '-', '0', '5', '12', ',', ' ', 'lines', '/', '*', '+', '.', '\t', '９']),
  anyText,
)

/** RFC 9110, 14.1.2, by trying every byte: those that the range names, or nothing when it names none. */
function wantedBytes(from: string, to: string, size: number): number[] {
  const all = Array.from({ length: size }, (_, at) => at)
  if (from === '') return Number(to) === 0 ? [] : all.slice(-Math.min(Number(to), size))
  return all.filter((at) => at >= Number(from) && (to === '' || at <= Number(to)))
}

describe('a Range', () => {
  test('gives exactly the bytes that a slow reading of the RFC gives, or cannot be met', () => {
    check(optionalDigits, optionalDigits, fc.nat(12), (from, to, size) => {
      if (from === '' && to === '') return
      const wanted = wantedBytes(from, to, size)
      let got: number[] | undefined
      const refusal = refusalOf(() => {
        const range = parseRange(`bytes=${from}-${to}`, size)
        got = range === undefined ? undefined : [range.first, range.last]
      })
      if (wanted.length === 0) expect(refusal).toBe('range-unsatisfiable')
      else expect(got).toEqual([wanted[0] ?? -1, wanted.at(-1) ?? -1])
    })
  })

  test('that is anything at all lies inside the blob, asks for all, or is refused', () => {
    check(nearRange, fc.nat(12), (header, size) => {
      const refusal = refusalOf(() => {
        const range = parseRange(header, size)
        if (range === undefined) return
        expect(range.first).toBeWithin(0, size)
        expect(range.last).toBeWithin(range.first, size)
      })
      expect([undefined, 'range-unsatisfiable']).toContain(refusal)
    })
  })
})

describe('a Content-Range', () => {
  test('that is two numbers in order says where and how much, as far as can be counted', () => {
    check(digits, digits, (first, last) => {
      const isGood = Number(last) <= Number.MAX_SAFE_INTEGER && Number(first) <= Number(last)
      let got: ReturnType<typeof parseChunkRange>
      const refusal = refusalOf(() => {
        got = parseChunkRange(`${first}-${last}`)
      })
      expect(refusal).toBe(isGood ? undefined : 'content-range-invalid')
      if (isGood) expect(got).toEqual({ first: Number(first), lengthBytes: Number(last) - Number(first) + 1 })
    })
  })

  test('that is anything else is refused', () => {
    check(nearRange, (header) => {
      if (/^\s*\d+-\d+\s*$/.test(header)) return
      expect(refusalOf(() => parseChunkRange(header))).toBe('content-range-invalid')
    })
  })
})

describe('a page', () => {
  test('has a limit between nothing and the most, or is refused', () => {
    const nearNumber = fc.oneof(digits, piecesOf(['1', '0', '-', '+', '.', 'e', ' ', 'x', ',']), anyText)
    check(nearNumber, fc.integer({ min: 1, max: 2_000 }), (n, most) => {
      const isNumber = n !== '' && [...n].every((letter) => '0123456789'.includes(letter))
      const refusal = refusalOf(() => {
        expect(parsePage(new URLSearchParams({ n }), most).limit).toBe(Math.min(Number(n), most))
      })
      expect(refusal).toBe(isNumber ? undefined : 'page-size-invalid')
    })
  })

  test('begins where the link of the page before it says, whatever the name', () => {
    const wellFormed = fc.string({ unit: 'grapheme', maxLength: 40 })
    check(wellFormed, fc.nat(2_000), fc.array(wellFormed, { maxLength: 3 }), (last, n, artifactType) => {
      const link = nextPageLink('/v2/_catalog', { n: String(n), last, artifactType })
      const [, address = ''] = /^<([!-;=?-~]*)>; rel="next"$/.exec(link) ?? []
      const { pathname, searchParams, hash } = new URL(address, 'http://h')
      expect({ pathname, hash }).toEqual({ pathname: '/v2/_catalog', hash: '' })
      expect(parsePage(searchParams, 2_000)).toEqual({ after: last, limit: n })
      expect(searchParams.getAll('artifactType')).toEqual(artifactType)
    })
  })
})
