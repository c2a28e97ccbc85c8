import { describe, expect, test } from 'bun:test'
import { nextPageLink } from '../../../src/http/paging.ts'

describe('a link to the next page', () => {
  test('encodes all characters that could end the link or the header', () => {
    const link = nextPageLink('/p', { last: '>; rel="x", <//evil>\r\nset-cookie: a=b&n=1#' })
    expect(link).toMatch(/^<\/p\?last=[^<>"\s&#]*>; rel="next"$/)
  })
})
