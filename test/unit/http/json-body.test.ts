import { describe, expect, test } from 'bun:test'
import type { Exchange } from '../../../src/http/exchange.ts'
import { jsonBody, readJson, readSmallBody } from '../../../src/http/json-body.ts'
import type { SchemaName } from '../../../src/http/openapi/schemas.ts'
import { openBody } from '../../../src/http/request-body.ts'
import { RegistryRefusal } from '../../../src/oci/errors.ts'
import { errorOf } from '../../support/basics/outcomes.ts'

const bytesMax = 120

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

const login = jsonBody('TokenRequest', bytesMax)
const valid = '{"username":"ann","password":"secret"}'

function read(body: string | Uint8Array<ArrayBuffer>, schema: SchemaName = 'TokenRequest'): Promise<unknown> {
  return readJson(exchangeOf(body), jsonBody(schema, bytesMax))
}

async function faultOf(promise: Promise<unknown>): Promise<unknown> {
  const error = await errorOf(promise)
  if (!(error instanceof RegistryRefusal)) throw error
  expect(error.refusal).toBe('body-invalid')
  return error.details[0]
}

describe('a JSON body', () => {
  test('is read as it was sent', async () => {
    expect(await read(valid)).toEqual({ username: 'ann', password: 'secret' })
    expect(await read(' {"roles":["reader"],"disabled":true} ', 'UserChangeRequest')).toEqual({
      roles: ['reader'],
      disabled: true,
    })
    expect(await read('{}', 'UserChangeRequest')).toEqual({})
  })

  test.each(['application/json', 'APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json ;x=y'])(
    'is accepted with the content type %j',
    async (type) => {
      expect(await readJson(exchangeOf(valid, type), login)).toMatchObject({ username: 'ann' })
    },
  )

  test.each([null, 'text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'text/json', '*/*'])(
    'is refused with the content type %j',
    async (type) => {
      expect(await faultOf(readJson(exchangeOf(valid, type), login))).toEqual({
        reason: 'the Content-Type must be application/json',
      })
    },
  )

  test.each(['', ' ', '{', '{"a":1,}', "{'a':1}", 'a=1', '{}{}', 'undefined', '\uFEFFx'])(
    'is refused if it is %j',
    async (body) => {
      expect(await faultOf(read(body))).toEqual({ reason: 'must be JSON' })
    },
  )

  test('is refused if it is not UTF-8', async () => {
    expect(await faultOf(read(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])))).toEqual({
      reason: 'must be UTF-8',
    })
  })

  test.each(['null', '[]', '[{}]', '"text"', '1', 'true'])(
    'is refused if it is %s, which is no object',
    async (body) => {
      expect(await faultOf(read(body))).toEqual({ reason: 'must be a JSON object' })
    },
  )

  test('is refused if it is nested deeper than 32', async () => {
    const nested = (depth: number) => `{"x":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
    expect(await faultOf(read(nested(32)))).toEqual({ field: 'username', reason: 'is required' })
    expect(await faultOf(read(nested(33)))).toEqual({ reason: 'must not be nested deeper than 32' })
  })

  test('may be as long as the limit, and not longer', async () => {
    const longest = `{"username":"ann","password":"${'x'.repeat(bytesMax - 32)}"}`
    expect(longest.length).toBe(bytesMax)
    expect(await read(longest)).toMatchObject({ username: 'ann' })
    expect(await faultOf(read(`${longest} `))).toEqual({ reason: `must be at most ${bytesMax} bytes` })
  })

  test.each([
    ['{"a":1,"\\u0061":3}', 'a'],
    ['{"username":"ann","Username":"bob"}', 'Username'],
    ['{"a":[{"x y":1,"x y":1}]}', '"x y"'],
  ])('is refused if a member is given twice: %s', async (body, field) => {
    expect(await faultOf(read(body))).toEqual({ field, reason: 'must be given once' })
  })

  test.each([
    ['{"name":"bob","c":1}', 'c'],
    ['{"c":1}', 'c'],
    ['{"name":"bob","__proto__":{"roles":["admin"]}}', '__proto__'],
    [`{"name":"bob","${'c'.repeat(80)}":1}`, `"${'c'.repeat(64)}"`],
  ])('is refused if its schema does not allow a member: %s', async (body, field) => {
    const reason = 'is not a member of this body, which can have name, roles, password'
    expect(await faultOf(read(body, 'NewUserRequest'))).toEqual({ field, reason })
  })

  test('may have unknown members if its schema allows them', async () => {
    expect(await read('{"username":"ann","password":"secret","c":1}')).toMatchObject({ username: 'ann' })
  })

  test('that names a prototype has no members of the prototype', async () => {
    const body = '{"__proto__":{"username":"ann","password":"secret"}}'
    expect(await faultOf(read(body))).toEqual({ field: 'username', reason: 'is required' })
    expect(({} as Record<string, unknown>)['username']).toBeUndefined()
  })

  test('is refused if the request says that it is encoded', async () => {
    const exchange = exchangeOf(valid)
    exchange.request.headers.set('content-encoding', 'gzip')
    expect(await errorOf(readJson(exchange, login))).toMatchObject({ refusal: 'content-encoding-unsupported' })
  })
})

test('a small body of another type is read as its bytes', async () => {
  const exchange = exchangeOf('a=1', 'application/x-www-form-urlencoded')
  const bytes = await readSmallBody(exchange, bytesMax, 'application/x-www-form-urlencoded')
  expect(new TextDecoder().decode(bytes)).toBe('a=1')
})

describe('a member', () => {
  const wrongTypes = ['["x"]', 'true', '1', 'null', '{}']

  test.each([
    ...wrongTypes.map((value) => ['NewUserRequest', `{"name":${value}}`, 'name', 'must be a string'] as const),
    ...['"x"', 'true', '1', 'null', '{}'].map(
      (value) => ['UserChangeRequest', `{"roles":${value}}`, 'roles', 'must be an array of strings'] as const,
    ),
    ...['"true"', '["x"]', '1', 'null', '""'].map(
      (value) => ['UserChangeRequest', `{"disabled":${value}}`, 'disabled', 'must be true or false'] as const,
    ),
    ['NewUserRequest', '{}', 'name', 'is required'],
    ['UserChangeRequest', '{"roles":["a",1]}', 'roles[1]', 'must be a string'],
    ['UserChangeRequest', `{"roles":[${'"a",'.repeat(24)}1]}`, 'roles[24]', 'must be a string'],
    ['NewApiKeyRequest', '{"name":"k","expiresAt":1}', 'expiresAt', 'must be a string'],
    ['NewApiKeyRequest', '{"name":"k","rights":"pull"}', 'rights', 'must be an array of strings'],
    ['NewApiKeyRequest', '{"name":"k","rights":[1]}', 'rights[0]', 'must be one of pull, push, delete, operate'],
    ['NewApiKeyRequest', '{"name":"k","repositories":[1]}', 'repositories[0]', 'must be a string'],
  ] as const)('of %s is refused by its name: %s', async (schema, body, field, reason) => {
    expect(await faultOf(read(body, schema))).toEqual({ field, reason })
  })

  test.each(['expiresAt', 'rights', 'repositories'])('%s may be null', async (name) => {
    const body = `{"name":"k","${name}":null}`
    expect(await read(body, 'NewApiKeyRequest')).toEqual({ name: 'k', [name]: null })
  })

  test('may have as many entries as its schema allows, and not more', async () => {
    const body = (entries: number) => `{"name":"k","repositories":[${Array(entries).fill('"a"').join()}]}`
    const long = (entries: number) => readJson(exchangeOf(body(entries)), jsonBody('NewApiKeyRequest', 1_000))
    expect((await long(64)).repositories).toHaveLength(64)
    expect(await faultOf(long(65))).toEqual({ field: 'repositories', reason: 'must have at most 64 entries' })
  })

  test('that only breaks a rule on texts is left to the parser of that text', async () => {
    expect(await read('{"name":"no name","roles":["no role"],"password":"x"}', 'NewUserRequest')).toMatchObject({
      name: 'no name',
    })
  })
})
