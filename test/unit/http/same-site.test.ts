import { describe, expect, test } from 'bun:test'
import { checkSameSite } from '../../../src/http/credentials.ts'
import { refusalOf } from '../../support/basics/outcomes.ts'
import { headers } from '../../support/basics/request-headers.ts'

const own = 'https://registry.example.com'

function verdict(method: string, fields: Readonly<Record<string, string>>, origin: string | undefined = own) {
  return refusalOf(() => checkSameSite(method, headers(fields), origin)) ?? 'allowed'
}

describe('a request that a browser sends with its cookie', () => {
  test.each(['GET', 'HEAD', 'OPTIONS'])('may look with %s from anywhere', (method) => {
    expect(verdict(method, { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' })).toBe('allowed')
  })

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'get', 'FOO'])('may act with %s from our own page only', (method) => {
    expect(verdict(method, { 'sec-fetch-site': 'same-origin' })).toBe('allowed')
    expect(verdict(method, { 'sec-fetch-site': 'none' })).toBe('allowed')
    expect(verdict(method, { origin: own })).toBe('allowed')
    for (const site of ['cross-site', 'same-site', '', 'Same-Origin', 'same-origin, none']) {
      expect(verdict(method, { 'sec-fetch-site': site, origin: own })).toBe('cross-site-request')
    }
  })

  test('may act with neither header, which no browser leaves out', () => {
    expect(verdict('POST', {})).toBe('allowed')
  })

  test.each([
    'null',
    '',
    'https://evil.example',
    'http://registry.example.com',
    'https://registry.example.com:444',
    'https://registry.example.com.evil.example',
    'https://registry.example.com/',
    'HTTPS://REGISTRY.EXAMPLE.COM',
  ])('may not act from origin %p', (origin) => {
    expect(verdict('POST', { origin })).toBe('cross-site-request')
  })

  test('may not act where nobody knows our own address', () => {
    expect(refusalOf(() => checkSameSite('POST', headers({ origin: own }), undefined))).toBe('cross-site-request')
  })
})
