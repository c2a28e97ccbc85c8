import { describe, expect, test } from 'bun:test'
import type { Exchange } from '../../../src/http/exchange.ts'
import {
  optionalFlagOf,
  optionalTextOf,
  optionalTextsOf,
  readJsonObject,
  readSmallBody,
  textOf,
} from '../../../src/http/json-body.ts'
import { openBody } from '../../../src/http/request-body.ts'
import { RegistryRefusal } from '../../../src/oci/errors.ts'
import { errorOf } from '../../support/outcomes.ts'
import { catchRefusal, refusalOf } from '../../support/refusal-of.ts'

const bytesMax = 100

function exchangeOf(body: string | Uint8Array<ArrayBuffer>, contentType: string | null = 'application/json'): Exchange {
  const headers: Record<string, string> = contentType === null ? {} : { 'content-type': contentType }
  const request = new Request('http://h/', { method: 'POST', body: new Blob([body]).stream(), headers })
  const limits = { bodyBytesPerSecondMin: 1, bodyWindowMs: 60_000 }
  const http = { publicUrl: undefined, trustedProxies: [], hasRootMount: true, serviceName: 'B', ...limits }
  const exchange: Partial<Exchange> = { request, body: () => openBody(request, { ...http, challenge: 'basic' }) }
  return exchange as Exchange
}

const read = (body: string | Uint8Array<ArrayBuffer>, members?: readonly string[]) =>
  readJsonObject(exchangeOf(body), bytesMax, members)

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
        reason: 'the content type must be application/json',
      })
    },
  )

  test.each(['', ' ', '{', '{"a":1,}', "{'a':1}", 'a=1', '{}{}', 'undefined', '\uFEFFx'])(
    'is not what holds %j',
    async (body) => {
      expect(await reasonOf(read(body))).toEqual({ reason: 'not JSON' })
    },
  )

  test('is not what is no UTF-8', async () => {
    expect(await reasonOf(read(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])))).toEqual({
      reason: 'not JSON',
    })
  })

  test.each(['null', '[]', '[{}]', '"text"', '1', 'true'])('is not %s', async (body) => {
    expect(await reasonOf(read(body))).toEqual({ reason: 'not a JSON object' })
  })

  test('is as long as it may be, and no longer', async () => {
    const longest = `{"a":"${'x'.repeat(bytesMax - 8)}"}`
    expect(longest.length).toBe(bytesMax)
    expect(Object.keys(await read(longest))).toEqual(['a'])
    expect(await reasonOf(read(`${longest} `))).toEqual({ max: bytesMax })
  })

  test('has the members that are known, and no others', async () => {
    expect(await read('{"b":1}', ['a', 'b'])).toEqual({ b: 1 })
    expect(await reasonOf(read('{"b":1,"c":1}', ['a', 'b']))).toEqual({ reason: 'there is no member "c" here' })
    expect(await reasonOf(read('{"__proto__":{"a":"x"}}', ['a']))).toEqual({
      reason: 'there is no member "__proto__" here',
    })
    expect(await reasonOf(read(`{"${'c'.repeat(80)}":1}`, ['a']))).toEqual({
      reason: `there is no member "${'c'.repeat(64)}" here`,
    })
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
  const body = {
    text: 'x',
    empty: '',
    list: ['a', 'b'],
    none: [],
    flag: false,
    nothing: null,
    number: 1,
    mixed: ['a', 1],
  }

  test('that is a text', () => {
    expect([textOf(body, 'text'), textOf(body, 'empty'), optionalTextOf(body, 'text')]).toEqual(['x', '', 'x'])
  })

  test('that is a list of texts', () => {
    expect([optionalTextsOf(body, 'list'), optionalTextsOf(body, 'none')]).toEqual([['a', 'b'], []])
  })

  test('that is a flag', () => {
    expect(optionalFlagOf(body, 'flag')).toBe(false)
  })

  test.each([optionalTextOf, optionalTextsOf, optionalFlagOf])('that need not be there (%p)', (find) => {
    expect([find(body, 'missing'), find(body, 'nothing')]).toEqual([undefined, undefined])
  })

  test('that is needed is asked for by name', () => {
    for (const name of ['missing', 'nothing']) {
      expect(catchRefusal(() => textOf(body, name))?.details).toEqual([{ reason: `${name} is needed` }])
    }
  })

  test('of another kind is refused', () => {
    for (const name of ['list', 'flag', 'number']) {
      expect([name, refusalOf(() => textOf(body, name))]).toEqual([name, 'body-invalid'])
      expect([name, refusalOf(() => optionalTextOf(body, name))]).toEqual([name, 'body-invalid'])
    }
    for (const name of ['text', 'flag', 'number', 'mixed']) {
      expect([name, refusalOf(() => optionalTextsOf(body, name))]).toEqual([name, 'body-invalid'])
    }
    for (const name of ['text', 'list', 'number', 'empty']) {
      expect([name, refusalOf(() => optionalFlagOf(body, name))]).toEqual([name, 'body-invalid'])
    }
  })
})
