import { describe, expect, test } from 'bun:test'
import type { Exchange } from '../../../src/http/exchange.ts'
import {
  type ExpectedMembers,
  optionalFlagOf,
  optionalTextOf,
  optionalTextsOf,
  readJsonObject,
  readSmallBody,
  textOf,
} from '../../../src/http/json-body.ts'
import { openBody } from '../../../src/http/request-body.ts'
import { RegistryRefusal } from '../../../src/oci/errors.ts'
import { catchRefusal, errorOf } from '../../support/basics/outcomes.ts'

const bytesMax = 100

function exchangeOf(
  content: string | Uint8Array<ArrayBuffer>,
  contentType: string | null = 'application/json',
): Exchange {
  const headers: Record<string, string> = contentType === null ? {} : { 'content-type': contentType }
  const request = new Request('http://h/', { method: 'POST', body: new Blob([content]).stream(), headers })
  const limits = { bodyBytesPerSecondMin: 1, bodyWindowMs: 60_000 }
  const http = {
    publicUrl: undefined,
    trustedProxies: [],
    hasRootMount: true,
    authUrl: undefined,
    serviceName: 'B',
    version: '1',
    docsUrl: undefined,
    ...limits,
  }
  const body = () => openBody(request, { ...http, challenge: 'basic' })
  const exchange: Partial<Exchange> = { request, body, reserve: async () => undefined }
  return exchange as Exchange
}

const read = (body: string | Uint8Array<ArrayBuffer>, expected?: ExpectedMembers) =>
  readJsonObject(exchangeOf(body), bytesMax, expected)

async function reasonOf(promise: Promise<unknown>): Promise<unknown> {
  const error = await errorOf(promise)
  if (!(error instanceof RegistryRefusal)) throw error
  expect(error.refusal).toBe('body-invalid')
  return error.details[0]
}

describe('a JSON object', () => {
  test('is read', async () => {
    expect(await read('{"a":"x","b":[1,null]}')).toEqual({ a: 'x', b: [1, null] })
    expect(await read(' {} ')).toEqual({})
  })

  test.each(['application/json', 'APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json ;x=y'])(
    'may say that it is %j',
    async (type) => {
      expect(await readJsonObject(exchangeOf('{}', type), bytesMax)).toEqual({})
    },
  )

  test.each([null, 'text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'text/json', '*/*'])(
    'may not say that it is %j',
    async (type) => {
      expect(await reasonOf(readJsonObject(exchangeOf('{}', type), bytesMax))).toEqual({
        reason: 'the Content-Type must be application/json',
      })
    },
  )

  test.each(['', ' ', '{', '{"a":1,}', "{'a':1}", 'a=1', '{}{}', 'undefined', '\uFEFFx'])(
    'is not what holds %j',
    async (body) => {
      expect(await reasonOf(read(body))).toEqual({ reason: 'must be JSON' })
    },
  )

  test('is not what is no UTF-8', async () => {
    expect(await reasonOf(read(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])))).toEqual({
      reason: 'must be UTF-8',
    })
  })

  test.each(['null', '[]', '[{}]', '"text"', '1', 'true'])('is not %s', async (body) => {
    expect(await reasonOf(read(body))).toEqual({ reason: 'must be a JSON object' })
  })

  test('is as long as it may be, and no longer', async () => {
    const longest = `{"a":"${'x'.repeat(bytesMax - 8)}"}`
    expect(longest.length).toBe(bytesMax)
    expect(Object.keys(await read(longest))).toEqual(['a'])
    expect(await reasonOf(read(`${longest} `))).toEqual({ reason: `must be at most ${bytesMax} bytes` })
  })

  test('has the members that are known, each once, and no others', async () => {
    const members = ['a', 'b']
    expect(await read('{"b":1}', { members })).toEqual({ b: 1 })
    const reason = 'is not a member of this body, which can have a, b'
    for (const [body, fault] of [
      ['{"b":1,"c":1}', { field: 'c', reason }],
      ['{"__proto__":{"a":"x"}}', { field: '__proto__', reason }],
      [`{"${'c'.repeat(80)}":1}`, { field: `"${'c'.repeat(64)}"`, reason }],
      ['{"a":1,"b":2,"\\u0061":3}', { field: 'a', reason: 'must be given once' }],
      ['{"a":[{"x y":1,"x y":1}]}', { field: '"x y"', reason: 'must be given once' }],
    ] as const) {
      expect(await reasonOf(read(body, { members }))).toEqual(fault)
    }
  })

  test('may have null for a member only where null means something', async () => {
    expect(await read('{"a":null,"b":null}', { members: ['a', 'b'], nullable: ['a'] })).toEqual({ b: null })
  })

  test('that names a prototype has no members of it', async () => {
    const body = await read('{"__proto__":{"a":"x"}}')
    expect(optionalTextOf(body, 'a')).toBeUndefined()
    expect(({} as Record<string, unknown>)['a']).toBeUndefined()
  })

  test('is not read from a body that says it is encoded', async () => {
    const exchange = exchangeOf('{}')
    exchange.request.headers.set('content-encoding', 'gzip')
    expect(await errorOf(readJsonObject(exchange, bytesMax))).toMatchObject({ refusal: 'content-encoding-unsupported' })
  })
})

test('a small body of another type is read as its bytes', async () => {
  const exchange = exchangeOf('a=1', 'application/x-www-form-urlencoded')
  const bytes = await readSmallBody(exchange, bytesMax, 'application/x-www-form-urlencoded')
  expect(new TextDecoder().decode(bytes)).toBe('a=1')
})

describe('a member', () => {
  const body = { text: 'x', empty: '', list: ['a', 'b'], none: [], flag: false, nothing: null, number: 1 }

  test('is read as what it is', () => {
    expect([textOf(body, 'text'), textOf(body, 'empty'), optionalTextOf(body, 'text')]).toEqual(['x', '', 'x'])
    expect([optionalTextsOf(body, 'list'), optionalTextsOf(body, 'none')]).toEqual([['a', 'b'], []])
    expect(optionalFlagOf(body, 'flag')).toBe(false)
    for (const find of [optionalTextOf, optionalTextsOf, optionalFlagOf]) expect(find(body, 'missing')).toBeUndefined()
  })

  test.each([
    [textOf, 'missing', 'is required'],
    ...['list', 'flag', 'number', 'nothing'].map((name) => [optionalTextOf, name, 'must be a string'] as const),
    ...['text', 'flag', 'number', 'nothing'].map(
      (name) => [optionalTextsOf, name, 'must be an array of strings'] as const,
    ),
    ...['text', 'list', 'empty', 'nothing'].map((name) => [optionalFlagOf, name, 'must be true or false'] as const),
  ] as const)('of another kind is refused by name (%p of %s: %s)', (find, field, reason) => {
    expect(catchRefusal(() => find(body, field))?.details).toEqual([{ field, reason }])
  })

  test('that is a list is refused by the place in it', () => {
    expect(catchRefusal(() => optionalTextsOf({ mixed: ['a', 1] }, 'mixed'))?.details).toEqual([
      { field: 'mixed[1]', reason: 'must be a string' },
    ])
  })
})
