import { describe, expect, test } from 'bun:test'
import { parsePage } from '../../../src/http/pages.ts'
import { refusalOf } from '../../support/basics/outcomes.ts'

function page(query: string) {
  return parsePage(new URLSearchParams(query), 1_000)
}

describe('a page', () => {
  test.each([
    ['', undefined],
    ['n=0', 0],
    ['n=1', 1],
    ['n=1000', 1_000],
    ['n=1001', 1_000],
    ['n=2147483648', 1_000],
    ['n=9007199254740993', 1_000],
    [`n=${'9'.repeat(400)}`, 1_000],
    ['n=007', 7],
  ])('%p has the limit %p', (query, limit) => {
    expect(page(query).limit).toBe(limit)
  })

  test.each([
    'n=',
    'n=-1',
    'n=%2B1',
    'n=1.5',
    'n=1e3',
    'n=1e999',
    'n=1,2',
    'n= 1',
    'n=0x10',
    'n=all',
    'n=%D9%A3',
    'n=1%00',
  ])('%p is refused', (query) => {
    expect(refusalOf(() => page(query))).toBe('page-size-invalid')
  })

  test('begins after a name, as it is written', () => {
    expect(page('last=library%2Falpine&n=5')).toEqual({ after: 'library/alpine', limit: 5 })
    expect(page('last=').after).toBe('')
    expect(page('n=5').after).toBeUndefined()
  })

  test('is not bothered by parameters of others', () => {
    expect(page('ns=docker.io&N=5&Last=x')).toEqual({ after: undefined, limit: undefined })
  })
})
