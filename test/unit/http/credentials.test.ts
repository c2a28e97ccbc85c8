// What each carrier of credentials contains. Their order, pairs and repetitions over HTTP: test/api/carriers-*.test.ts.
// Random texts: test/fuzz/credentials.test.ts.
import { describe, expect, test } from 'bun:test'
import { findCredential } from '../../../src/http/credentials.ts'
import { basic, headers } from '../../support/basics/request-headers.ts'

function found(fields: Readonly<Record<string, string>>, query = '') {
  return findCredential(headers(fields), new URLSearchParams(query))
}

function inAuthorization(authorization: string) {
  return found({ authorization })?.credential
}

describe('the six carriers', () => {
  const apiKey = { kind: 'api-key', secret: 's3cret' } as const
  const bearer = { kind: 'bearer', secret: 's3cret' } as const

  test('are each read as their credential', () => {
    expect(found({ authorization: 'bEaReR s3cret' })).toEqual({ carrier: 'authorization', credential: bearer })
    expect(found({ authorization: basic('apikey:s3cret') })).toEqual({ carrier: 'authorization', credential: apiKey })
    expect(found({ authorization: basic('bearer:s3cret') })).toEqual({ carrier: 'authorization', credential: bearer })
    expect(found({ 'x-api-key': 's3cret' })).toEqual({ carrier: 'api-key-header', credential: apiKey })
    expect(found({}, 'apiKey=s3cret')).toEqual({ carrier: 'query', credential: apiKey })
    expect(found({ cookie: 'svc-auth=s3cret' })).toEqual({ carrier: 'cookie', credential: bearer })
  })

  test('are all absent from an anonymous request', () => {
    expect(found({ cookie: 'other=1', accept: '*/*' })).toBeUndefined()
    expect(found({ cookie: '' }, 'apikey=wrong-case&n=5')).toBeUndefined()
    expect(found({ cookie: 'Svc-Auth=a; xsvc-auth=b; svc-authx=c; svc-auth' })).toBeUndefined()
  })

  test.each([
    ['an empty key', { 'x-api-key': '', cookie: 'svc-auth=good' }, '', 'api-key-header'],
    ['an empty key in the query', { cookie: 'svc-auth=good' }, 'apiKey=', 'query'],
    ['two keys in the query', { cookie: 'svc-auth=good' }, 'apiKey=a&apiKey=b', 'query'],
    ['two empty keys in the query', {}, 'apiKey=&apiKey=', 'query'],
    ['an empty cookie', { cookie: 'svc-auth=' }, '', 'cookie'],
    ['two equal cookies', { cookie: 'svc-auth=a; other=1; svc-auth=a' }, '', 'cookie'],
  ] as const)('are invalid, and not absent, with %s', (_, fields, query, carrier) => {
    expect(found(fields, query)).toEqual({ carrier, credential: undefined })
  })

  test('keep a cookie among others, with its equals signs', () => {
    expect(found({ cookie: 'a=1;  svc-auth=x=y== ; b=2' })?.credential?.secret).toBe('x=y==')
  })
})

describe('the Authorization header', () => {
  test('with any other name is a login of the user of that name', () => {
    for (const userName of ['ann', 'ApiKey', 'ann@example.com', 'Ann Smith', 'änn', 'x'.repeat(255)]) {
      expect(inAuthorization(basic(`${userName}:a:b`))).toEqual({ kind: 'login', userName, secret: 'a:b' })
    }
  })

  test.each(['Basic Og==', 'basic Og==', 'BASIC Og=='])('is absent as %p: no name and no password', (authorization) => {
    expect(found({ authorization })).toBeUndefined()
    expect(found({ authorization, 'x-api-key': 'k' })?.carrier).toBe('api-key-header')
  })

  test('keeps all characters of a secret', () => {
    for (const secret of ['a:b:c', ':', 'ü', '\ufeffk']) {
      expect(inAuthorization(basic(`apikey:${secret}`))?.secret).toBe(secret)
    }
  })

  test.each([
    ['no colon', basic('apikey')],
    ['nothing behind the colon', basic('apikey:')],
    ['a control character in the name', basic('an\0n:word')],
    ['a name that is too long', basic(`${'x'.repeat(256)}:word`)],
    ['a name and no password', basic('ann:')],
    ['no user', basic(':key')],
    ['letters that are not base64', 'Basic YXBpa2V5OmtleQ$$'],
    ['the other base64 alphabet', `Basic ${Buffer.from('apikey:??>>').toString('base64url')}-_`],
    ['padding in the middle', 'Basic YXBp=2V5OmtleQ=='],
    ['padding alone', 'Basic =='],
    ['three padding signs', 'Basic YXBpa2V5Oms==='],
    ['a length that base64 cannot have', 'Basic YXBpa2V5Omtle'],
    ['a space inside', 'Basic YXBpa2V5 OmtleQ=='],
    ['bytes that are not UTF-8', `Basic ${Buffer.from('apikey:\xff', 'latin1').toString('base64')}`],
    ['the letters of an empty Basic in another case', 'Basic OG=='],
    ['an empty Basic with a space too many', 'Basic  Og=='],
    ['nothing', ''],
    ['a scheme without a value', 'Bearer'],
    ['an unknown scheme', 'Digest x'],
    ['two values', 'Bearer a, Bearer b'],
    ['a tab in place of the space', 'Bearer\tt'],
    ['no scheme', 's3cret'],
  ])('with %s is invalid', (_, authorization) => {
    expect(found({ authorization })).toEqual({ carrier: 'authorization', credential: undefined })
  })

  test('is not read when it is too long', () => {
    const longest = 'x'.repeat(8_192)
    expect(inAuthorization(`Bearer ${longest}`)?.secret.length).toBe(8_192)
    for (const authorization of [`Bearer ${longest}x`, basic(`apikey:${longest}x`), `Basic ${'A'.repeat(40_000)}`]) {
      expect(inAuthorization(authorization)).toBeUndefined()
    }
  })
})
