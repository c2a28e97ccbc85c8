import { describe, expect, test } from 'bun:test'
import { toResponse } from '../../../src/http/answer.ts'
import { ContentHeaders, isUnchanged } from '../../../src/http/content-headers.ts'
import { parseDigest } from '../../../src/oci/digest.ts'
import { headers } from '../../support/basics/request-headers.ts'

const digest = parseDigest(`sha256:${'0'.repeat(64)}`)
const other = `sha256:${'1'.repeat(64)}`

// The tags for which 304 is the answer: test/api/v2/get-manifest.test.ts.
test.each([`"${other}"`, digest, `w/"${digest}"`, '""', '"*"', `"${digest.slice(0, -1)}"`, undefined])(
  'content is sent for If-None-Match %p',
  (tag) => expect(isUnchanged(headers(tag === undefined ? {} : { 'if-none-match': tag }), digest)).toBe(false),
)

describe('an answer', () => {
  const context = { isHead: false, requestId: 'r1', isLast: false, isSecretInQuery: false }

  test('to HEAD has the length of the body without the body', async () => {
    const response = toResponse({ status: 200, headers: {}, body: 'äb' }, { ...context, isHead: true })
    expect([response.headers.get('content-length'), await response.text()]).toEqual(['3', ''])
  })

  test('has the given length if Bun does not know it', () => {
    expect(toResponse({ status: 200, headers: {}, lengthBytes: 7 }, context).headers.get('content-length')).toBe('7')
  })

  test('does not change prepared headers, which other answers use too', () => {
    const prepared = new ContentHeaders({ 'accept-ranges': 'bytes' }).of(digest, 'text/plain')
    const before = [...prepared]
    const answer = { status: 200, headers: prepared, lengthBytes: 7 }
    const one = toResponse(answer, { ...context, isLast: true, isHead: true, isSecretInQuery: true })
    const two = toResponse(answer, { ...context, requestId: 'r2' })

    expect([...prepared]).toEqual(before)
    expect(one.headers.get('cache-control')).toBe('no-store')
    expect([two.headers.get('x-request-id'), two.headers.get('cache-control')]).toEqual(['r2', null])
    expect(two.headers.toJSON()).toMatchObject({
      etag: `"${digest}"`,
      'accept-ranges': 'bytes',
      'content-type': 'text/plain',
    })
  })

  test('has Connection: close if it is the last of its connection', () => {
    const last = toResponse({ status: 200, headers: {} }, { ...context, isLast: true })
    expect(last.headers.get('connection')).toBe('close')
    expect(toResponse({ status: 200, headers: {} }, context).headers.get('connection')).toBeNull()
  })
})

describe('prepared headers', () => {
  test('have the media type of the content, also if two repositories have the same bytes with different types', () => {
    const headersOf = new ContentHeaders()
    const types = ['a/b', 'c/d', 'a/b'].map((type) => headersOf.of(digest, type).get('content-type'))
    expect(types).toEqual(['a/b', 'c/d', 'a/b'])
  })

  test('are kept for a bounded number of digests', () => {
    const headersOf = new ContentHeaders()
    const first = headersOf.of(digest, 'a/b')
    expect(headersOf.of(digest, 'a/b')).toBe(first)
    for (let n = 1; n <= 2_000; n += 1) headersOf.of(parseDigest(`sha256:${String(n).padStart(64, '0')}`), 'a/b')
    expect(headersOf.of(digest, 'a/b')).not.toBe(first)
  })
})
