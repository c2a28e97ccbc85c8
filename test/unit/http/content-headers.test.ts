import { describe, expect, test } from 'bun:test'
import { contentHeaders, isUnchanged, notModified } from '../../../src/http/content-headers.ts'
import { toResponse } from '../../../src/http/response.ts'
import { parseDigest } from '../../../src/oci/digest.ts'
import { headers } from '../../support/basics/request-headers.ts'

const digest = parseDigest(`sha256:${'0'.repeat(64)}`)
const other = `sha256:${'1'.repeat(64)}`

describe('content that a client has already', () => {
  test.each([
    `"${digest}"`,
    `W/"${digest}"`,
    '*',
    `"${other}", "${digest}"`,
    `"${other}",W/"${digest}"`,
    ` "${digest}" `,
  ])('is not sent again for If-None-Match %p', (tag) => {
    expect(isUnchanged(headers({ 'if-none-match': tag }), digest)).toBe(true)
  })

  test.each([`"${other}"`, digest, `w/"${digest}"`, '""', '"*"', `"${digest.slice(0, -1)}"`])(
    'is sent for If-None-Match %p',
    (tag) => {
      expect(isUnchanged(headers({ 'if-none-match': tag }), digest)).toBe(false)
    },
  )

  test('is sent when nobody asks', () => {
    expect(isUnchanged(headers({}), digest)).toBe(false)
    expect(notModified(digest)).toEqual({
      status: 304,
      headers: { etag: `"${digest}"`, 'docker-content-digest': digest },
    })
  })
})

describe('an answer', () => {
  const context = { isHead: false, requestId: 'r1', isLast: false, isSecretInQuery: false }

  test('with stored content is no page of ours to a browser', () => {
    const answer = { status: 200, headers: contentHeaders(digest, 'text/html'), body: '<script>' }
    const response = toResponse(answer, context)
    expect(response.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('etag')).toBe(`"${digest}"`)
  })

  test('to HEAD has the length, and not the body', async () => {
    const response = toResponse({ status: 200, headers: {}, body: 'äb' }, { ...context, isHead: true })
    expect([response.headers.get('content-length'), await response.text()]).toEqual(['3', ''])
  })

  test('has the length of its bytes, not of its letters', () => {
    expect(toResponse({ status: 200, headers: {}, body: 'äb' }, context).headers.get('content-length')).toBe('3')
    expect(toResponse({ status: 200, headers: {}, lengthBytes: 7 }, context).headers.get('content-length')).toBe('7')
  })

  test('to an address with a key in it is kept by nobody', () => {
    const response = toResponse({ status: 200, headers: {} }, { ...context, isSecretInQuery: true })
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('referrer-policy')).toBe('no-referrer')
  })

  test('that is the last of its connection says so', () => {
    const last = toResponse({ status: 200, headers: {} }, { ...context, isLast: true })
    expect(last.headers.get('connection')).toBe('close')
    expect(toResponse({ status: 200, headers: {} }, context).headers.get('connection')).toBeNull()
  })
})
