import { describe, expect, test } from 'bun:test'
import { findCredential } from '../../../src/http/credentials.ts'
import { basic, headers } from '../../support/basics/request-headers.ts'

const noQuery = new URLSearchParams()

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
    expect(found({ authorization: 'Bearer s3cret' })).toEqual({ carrier: 'authorization', credential: bearer })
    expect(found({ authorization: basic('apikey:s3cret') })).toEqual({ carrier: 'authorization', credential: apiKey })
    expect(found({ authorization: basic('bearer:s3cret') })).toEqual({ carrier: 'authorization', credential: bearer })
    expect(found({ 'x-api-key': 's3cret' })).toEqual({ carrier: 'api-key-header', credential: apiKey })
    expect(found({}, 'apiKey=s3cret')).toEqual({ carrier: 'query', credential: apiKey })
    expect(found({ cookie: 'svc-auth=s3cret' })).toEqual({ carrier: 'cookie', credential: bearer })
  })

  test('are all absent from an anonymous request', () => {
    expect(findCredential(headers({ cookie: 'other=1', accept: '*/*' }), noQuery)).toBeUndefined()
    expect(found({ cookie: '' }, 'apikey=wrong-case&n=5')).toBeUndefined()
    expect(found({ cookie: 'Svc-Auth=a; xsvc-auth=b; svc-authx=c; svc-auth' })).toBeUndefined()
  })

  test('are read in a fixed order: the first one present decides', () => {
    const all = { authorization: 'Bearer 1', 'x-api-key': '2', cookie: 'svc-auth=4' }
    const { authorization: _first, ...rest } = all
    expect(found(all, 'apiKey=3')?.credential?.secret).toBe('1')
    expect(found(rest, 'apiKey=3')?.credential?.secret).toBe('2')
    expect(found({ cookie: all.cookie }, 'apiKey=3')?.credential?.secret).toBe('3')
  })

  test('are not replaced by a later valid one if the first is invalid', () => {
    const good = { 'x-api-key': 'good', cookie: 'svc-auth=good' }
    for (const authorization of ['', 'Bearer', 'Bearer ', 'Digest x', 'Basic', 'Basic !!!', basic(':good')]) {
      expect(found({ ...good, authorization }, 'apiKey=good')).toEqual({
        carrier: 'authorization',
        credential: undefined,
      })
    }
    expect(found({ cookie: 'svc-auth=good', 'x-api-key': '' })?.credential).toBeUndefined()
    expect(found({ cookie: 'svc-auth=good' }, 'apiKey=')).toEqual({ carrier: 'query', credential: undefined })
  })
})

describe('the Authorization header', () => {
  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('takes the scheme %p', (scheme) => {
    expect(inAuthorization(`${scheme} t`)).toEqual({ kind: 'bearer', secret: 't' })
  })

  test('with any other name is a login of the user of that name', () => {
    for (const userName of ['ann', 'ApiKey', 'ann@example.com', 'Ann Smith', 'änn', 'x'.repeat(255)]) {
      expect(inAuthorization(basic(`${userName}:a:b`))).toEqual({ kind: 'login', userName, secret: 'a:b' })
    }
  })

  test.each(['Basic', 'basic', 'BASIC'])('takes the scheme %p', (scheme) => {
    expect(inAuthorization(basic('apikey:k').replace('Basic', scheme))).toEqual({ kind: 'api-key', secret: 'k' })
  })

  test.each(['Basic Og==', 'basic Og==', 'BASIC Og=='])('is absent as %p: no name and no password', (authorization) => {
    expect(found({ authorization })).toBeUndefined()
    expect(found({ authorization, 'x-api-key': 'k' })).toEqual({
      carrier: 'api-key-header',
      credential: { kind: 'api-key', secret: 'k' },
    })
  })

  test('keeps the colons in a key', () => {
    expect(inAuthorization(basic('apikey:a:b:c'))?.secret).toBe('a:b:c')
    expect(inAuthorization(basic('bearer::'))?.secret).toBe(':')
    expect(inAuthorization(basic('apikey:ü'))?.secret).toBe('ü')
    expect(inAuthorization(basic('apikey:\ufeffk'))?.secret).toBe('\ufeffk')
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
    ['bytes that are no UTF-8', `Basic ${Buffer.from('apikey:\xff', 'latin1').toString('base64')}`],
    ['the letters of an empty Basic in another case', 'Basic OG=='],
    ['an empty Basic with a space too many', 'Basic  Og=='],
    ['a colon and one more letter', basic(':x')],
    ['two schemes', 'Bearer'],
    ['a tab in place of the space', 'Bearer\tt'],
    ['no scheme', 's3cret'],
  ])('with %s holds nothing', (_what, authorization) => {
    expect(found({ authorization })).toEqual({ carrier: 'authorization', credential: undefined })
  })

  test('is not read when it is too long', () => {
    const fits = 'x'.repeat(8_192)
    expect(inAuthorization(`Bearer ${fits}`)?.secret.length).toBe(8_192)
    expect(inAuthorization(`Bearer ${fits}x`)).toBeUndefined()
    expect(inAuthorization(basic(`apikey:${fits}x`))).toBeUndefined()
    expect(inAuthorization(`Basic ${'A'.repeat(40_000)}`)).toBeUndefined()
  })
})

describe('a repeated carrier', () => {
  test.each([
    ['two Authorization lines', { authorization: 'Bearer a, Bearer b' }, ''],
    ['an Authorization whose parameters have commas', { authorization: 'Digest username="x", realm="y"' }, ''],
    ['two keys in one line', { 'x-api-key': 'a, b' }, ''],
    ['two cookies', { cookie: 'svc-auth=a; svc-auth=b' }, ''],
    ['two cookies that are the same', { cookie: 'svc-auth=a; other=1; svc-auth=a' }, ''],
    ['two query keys', {}, 'apiKey=a&apiKey=b'],
    ['two empty query keys', {}, 'apiKey=&apiKey='],
  ])('%s hold nothing', (_what, fields, query) => {
    expect(found(fields as Record<string, string>, query)).toEqual({
      carrier: expect.any(String),
      credential: undefined,
    })
  })
})

describe('the cookie', () => {
  test('is found among other cookies, with its equals signs', () => {
    expect(found({ cookie: 'a=1;  svc-auth=x=y== ; b=2' })?.credential?.secret).toBe('x=y==')
  })

  test('is invalid and not absent if it is empty', () => {
    expect(found({ cookie: 'svc-auth=' })).toEqual({ carrier: 'cookie', credential: undefined })
  })
})
