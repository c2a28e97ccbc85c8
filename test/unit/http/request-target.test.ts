import { describe, expect, test } from 'bun:test'
import { parseTarget } from '../../../src/http/request-target.ts'
import { refusalOf } from '../../support/basics/outcomes.ts'

const host = 'http://127.0.0.1:5000'

describe('a path that two readers could read differently', () => {
  test.each([
    '/v2//a',
    '//v2/a',
    '/v2/a//',
    '/v2/a%2fb',
    '/v2/a%2Fb',
    '/v2/a%5cb',
    '/v2/a%5Cb',
    '/v2/%2e%2e/a',
    '/v2/%2E/a',
    '/v2/a%00',
    '/v2/a%0d%0aX',
    '/v2/a%09',
    '/v2/a%1F',
    '/v2/a%7f',
    '/v2/a%',
    '/v2/a%2',
    '/v2/a%zz',
    '/v2/%c0%af',
    '/v2/%e0%80%af',
    '/v2/%ff',
    '/v2/%ed%a0%80',
  ])('%p is refused', (path) => {
    expect(refusalOf(() => parseTarget(host + path))).toBe('path-invalid')
  })

  test.each([
    ['the sign that begins a terminal command', '%C2%9B31m'],
    ['a next line', '%C2%85'],
    ['a line separator', '%E2%80%A8'],
    ['a turn of the writing direction', '%E2%80%AE'],
    ['a letter', '%C3%A9'],
  ])('with a character that is not ASCII is refused: %s', (_what, encoded) => {
    expect(refusalOf(() => parseTarget(`${host}/v2/a${encoded}`))).toBe('path-invalid')
  })
})

describe('a target that comes as it was sent, for want of a Host', () => {
  test.each([
    '/v2/a\x7f',
    '/v2/a\u009b31m',
    '/v2/a\u0085',
    '/v2/aé',
    '/v2/a\u202e',
    '/v2/a\ufffd',
    '/v2/a\n',
    '/v2/a\0',
  ])('may hold visible ASCII alone, and not %j', (target) => {
    expect(refusalOf(() => parseTarget(target))).toBe('path-invalid')
  })
})
