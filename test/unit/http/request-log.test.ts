import { expect, test } from 'bun:test'
import { requestLogLayouts } from '../../../src/http/request-log.ts'
import type { LogFields } from '../../../src/lib/log.ts'

test('the line of a request shows what happened in a few words', () => {
  const line = (fields: LogFields) => requestLogLayouts['request']?.(fields)

  expect(line({ method: 'GET', path: '/v2/a', status: 200, ms: 1.25, bytes: 7, who: 'abc' })).toBe(
    '200 GET /v2/a  1.25 ms  7 B  abc',
  )
  expect(line({ method: 'HEAD', path: '/v2/', status: 401, ms: 0.5 })).toBe('401 HEAD /v2/  0.5 ms  -')
  const cut = { method: 'PATCH', path: '/v2/u', status: 400, ms: 2, received: 9, interrupted: 'gone' }
  expect(line(cut)).toBe('400 PATCH /v2/u  2 ms  9 B  -  (gone)')
  expect(line({ ...cut, kept: 5 })).toBe('400 PATCH /v2/u  2 ms  9 B  -  (gone; 5 B are kept)')
})
