import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { findCredential } from '../../src/http/credentials.ts'
import { anyText, check, piecesOf } from '../support/basics/fuzzing.ts'
import { basic, headers } from '../support/basics/request-headers.ts'

/** What can stand in a header's value: no control characters, no space at the ends. */
const headerText = fc.string({
  unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 60,
})
const nearHeader = fc.oneof(
  headerText,
  piecesOf(['Basic', 'bearer', 'Bearer ', ' ', 'YXBpa2V5Omtl', 'eQ==', '=', ',', ':', 'apikey:', '\t', 'Digest']),
  headerText.map((text) => basic(text)),
  piecesOf(['Basic', 'BASIC', ' ', 'Og==', 'OG==', 'oG=='], 3),
  headerText.map((text) => `Bearer ${text}`),
)
const noQuery = new URLSearchParams()

/** What clients send that were asked for a name and a password and given neither. */
const isNothing = (authorization: string) =>
  /^[Bb][Aa][Ss][Ii][Cc] Og==$/.test(new Headers({ authorization }).get('authorization') ?? '')

/** Without half letters, which have no bytes. */
const wellFormed = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 })

describe('a credential', () => {
  test('of any letters comes through Basic unchanged, whatever the case of the scheme', () => {
    check(
      wellFormed,
      fc.constantFrom('apikey', 'bearer'),
      fc.mixedCase(fc.constant('Basic')),
      (secret, user, scheme) => {
        const authorization = basic(`${user}:${secret}`).replace('Basic', scheme)
        const kind = user === 'apikey' ? 'api-key' : 'bearer'
        expect(findCredential(headers({ authorization }), noQuery)?.credential).toEqual({ kind, secret })
      },
    )
  })

  test('of any letters comes through the query unchanged', () => {
    check(wellFormed, (secret) => {
      const query = new URLSearchParams(new URLSearchParams({ apiKey: secret }).toString())
      expect(findCredential(headers({}), query)?.credential?.secret).toBe(secret)
    })
  })
})

describe('whatever stands in the carriers', () => {
  const carriers = fc.record(
    { authorization: nearHeader, 'x-api-key': nearHeader, cookie: fc.oneof(nearHeader, cookieText()), apiKey: anyText },
    { requiredKeys: [] },
  )

  function cookieText() {
    return piecesOf(['svc-auth', '=', ';', ' ', 'a', 'Svc-Auth', ',', '"', 'svc-auth=x'])
  }

  test('the first carrier decides; its secret is never empty, too long, or one with a comma from a header', () => {
    check(carriers, ({ apiKey, ...fields }) => {
      const query = new URLSearchParams(apiKey === undefined ? {} : { apiKey })
      const found = findCredential(headers(fields), query)
      const secret = found?.credential?.secret
      if (secret !== undefined) expect(secret.length).toBeWithin(1, 8_193)
      if (found?.carrier === 'api-key-header') expect(secret ?? '').not.toContain(',')
      if (fields.authorization !== undefined && !isNothing(fields.authorization)) {
        expect(found?.carrier).toBe('authorization')
        return
      }
      if (fields['x-api-key'] !== undefined) expect(found?.carrier).toBe('api-key-header')
      else if (apiKey !== undefined) expect(found?.carrier).toBe('query')
      else expect([undefined, 'cookie']).toContain(found?.carrier)
    })
  })

  test('a second Authorization line makes both invalid', () => {
    check(nearHeader, nearHeader, (first, second) => {
      const both = new Headers()
      both.append('authorization', first)
      both.append('authorization', second)
      expect(findCredential(both, noQuery)).toEqual({ carrier: 'authorization', credential: undefined })
    })
  })
})

describe('base64 that two readers could read differently', () => {
  const letters = fc.string({ unit: fc.constantFrom(...'YXBpa2V5Omtle=+/-_ \tQ'), minLength: 1, maxLength: 24 })

  test('is refused: what is taken is exactly what an encoder would write, but for the unused bits', () => {
    check(letters, (encoded) => {
      const found = findCredential(headers({ authorization: `Basic ${encoded}` }), noQuery)
      if (found?.credential === undefined) return
      const bytes = Buffer.from(encoded.trim(), 'base64')
      expect(bytes.toString('base64').length).toBe(encoded.trim().length)
      expect(bytes.toString('base64').replace(/=+$/, '').slice(0, -1)).toBe(
        encoded.trim().replace(/=+$/, '').slice(0, -1),
      )
    })
  })
})
