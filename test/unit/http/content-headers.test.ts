import { describe, expect, test } from 'bun:test'
import { toResponse } from '../../../src/http/answer.ts'
import { isUnchanged, notModified } from '../../../src/http/content-headers.ts'
import { parseDigest } from '../../../src/oci/digest.ts'
import { headers } from '../../support/basics/request-headers.ts'

const digest = parseDigest(`sha256:${'0'.repeat(64)}`)
const other = `sha256:${'1'.repeat(64)}`

describe('content that the client has cached', () => {
  test.each([`"${other}"`, digest, `w/"${digest}"`, '""', '"*"', `"${digest.slice(0, -1)}"`])(
    'is sent for If-None-Match %p',
    (tag) => {
      expect(isUnchanged(headers({ 'if-none-match': tag }), digest)).toBe(false)
    },
  )

  test('is sent without a condition', () => {
    expect(isUnchanged(headers({}), digest)).toBe(false)
    expect(notModified(digest)).toEqual({
      status: 304,
      headers: { etag: `"${digest}"`, 'docker-content-digest': digest },
    })
  })
})

describe('an answer', () => {
  const context = { isHead: false, requestId: 'r1', isLast: false, isSecretInQuery: false }

  test('to HEAD has the length of the body without the body', async () => {
    const response = toResponse({ status: 200, headers: {}, body: 'äb' }, { ...context, isHead: true })
    expect([response.headers.get('content-length'), await response.text()]).toEqual(['3', ''])
  })

  test('has its length in bytes, not in characters', () => {
    expect(toResponse({ status: 200, headers: {}, body: 'äb' }, context).headers.get('content-length')).toBe('3')
    expect(toResponse({ status: 200, headers: {}, lengthBytes: 7 }, context).headers.get('content-length')).toBe('7')
  })

  test('has Connection: close if it is the last of its connection', () => {
    const last = toResponse({ status: 200, headers: {} }, { ...context, isLast: true })
    expect(last.headers.get('connection')).toBe('close')
    expect(toResponse({ status: 200, headers: {} }, context).headers.get('connection')).toBeNull()
  })
})
