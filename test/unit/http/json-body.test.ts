// The JSON bodies of requests. What each field may hold over HTTP: test/api/identity.
import { describe, expect, test } from 'bun:test'
import type { Exchange } from '../../../src/http/exchange.ts'
import { jsonBody, readJson } from '../../../src/http/json-body.ts'
import type { SchemaName } from '../../../src/http/openapi/schemas.ts'
import { openBody } from '../../../src/http/request-body.ts'
import { RegistryRefusal } from '../../../src/oci/errors.ts'
import { errorOf } from '../../support/basics/outcomes.ts'

const bytesMax = 120

interface Body {
  readonly content: string | Uint8Array<ArrayBuffer>
  readonly headers?: Readonly<Record<string, string>>
}

function exchangeOf({ content, headers = { 'content-type': 'application/json' } }: Body): Exchange {
  const request = new Request('http://h/', { method: 'POST', body: new Blob([content]).stream(), headers })
  const limits = { bodyBytesPerSecondMin: 1, bodyWindowMs: 60_000 }
  const body = () => openBody(request, limits as Parameters<typeof openBody>[1])
  const exchange: Partial<Exchange> = { request, body, reserve: async () => undefined }
  return exchange as Exchange
}

function read(content: Body['content'], schema: SchemaName = 'TokenRequest', max = bytesMax): Promise<unknown> {
  return readJson(exchangeOf({ content }), jsonBody(schema, max))
}

async function faultOf(promise: Promise<unknown>): Promise<unknown> {
  const error = await errorOf(promise)
  if (!(error instanceof RegistryRefusal)) throw error
  expect(error.refusal).toBe('body-invalid')
  return error.details[0]
}

const login = { username: 'ann', password: 'secret' }
const valid = JSON.stringify(login)
const nested = (depth: number) => `{"x":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`

describe('a JSON body', () => {
  test.each(['application/json', 'APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json ;x=y'])(
    'is accepted with the content type %j',
    async (type) => {
      const exchange = exchangeOf({ content: valid, headers: { 'content-type': type } })
      expect(await readJson(exchange, jsonBody('TokenRequest', bytesMax))).toEqual(login)
    },
  )

  test.each([
    ...['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'text/json', '*/*'].map((type) => ({
      'content-type': type,
    })),
    {},
  ])('is refused with the headers %j', async (headers) => {
    const refused = readJson(exchangeOf({ content: valid, headers }), jsonBody('TokenRequest', bytesMax))
    expect(await faultOf(refused)).toEqual({ reason: 'the Content-Type must be application/json' })
  })

  test('is refused if the request says that it is encoded', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const refused = readJson(exchangeOf({ content: valid, headers }), jsonBody('TokenRequest', bytesMax))
    expect(await errorOf(refused)).toMatchObject({ refusal: 'content-encoding-unsupported' })
  })

  test.each([
    ...['', ' ', '{', '{"a":1,}', "{'a':1}", 'a=1', '{}{}', 'undefined', '\uFEFFx'].map(
      (one) => [one, 'must be JSON'] as const,
    ),
    ...['null', '[]', '[{}]', '"text"', '1', 'true'].map((one) => [one, 'must be a JSON object'] as const),
    [nested(33), 'must not be nested deeper than 32'],
    [new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'must be UTF-8'],
  ])('is refused as a whole: %p', async (content, reason) => {
    expect(await faultOf(read(content))).toEqual({ reason })
  })

  test('may be as long as the limit, and not longer', async () => {
    const longest = `{"username":"ann","password":"${'x'.repeat(bytesMax - 32)}"}`
    expect(longest.length).toBe(bytesMax)
    expect(await read(longest)).toMatchObject({ username: 'ann' })
    expect(await faultOf(read(`${longest} `))).toEqual({ reason: `must be at most ${bytesMax} bytes` })
  })

  test.each([
    ['UserChangeRequest', ' {"roles":["reader"],"disabled":true} ', { roles: ['reader'], disabled: true }],
    // The schema allows unknown members.
    ['TokenRequest', '{"username":"ann","password":"secret","c":1}', { ...login, c: 1 }],
    ...['expiresAt', 'rights', 'repositories'].map(
      (name) => ['NewApiKeyRequest', `{"name":"k","${name}":null}`, { name: 'k', [name]: null }] as const,
    ),
    // The parser of each text decides what it may be.
    ['NewUserRequest', '{"name":"no name","password":"x"}', { name: 'no name', password: 'x' }],
  ] as const)('is read as it was sent: %s %s', async (schema, content, value) => {
    expect(await read(content, schema)).toEqual(value)
  })

  const notAMember = 'is not a member of this body, which can have name, roles, password'
  test.each([
    ['TokenRequest', '{"a":1,"\\u0061":3}', 'a', 'must be given once'],
    ['TokenRequest', '{"username":"ann","Username":"bob"}', 'Username', 'must be given once'],
    ['TokenRequest', '{"a":[{"x y":1,"x y":1}]}', '"x y"', 'must be given once'],
    ['TokenRequest', nested(32), 'username', 'is required'],
    // A member of the prototype is not a member.
    ['TokenRequest', `{"__proto__":${valid}}`, 'username', 'is required'],
    ['NewUserRequest', '{}', 'name', 'is required'],
    ['NewUserRequest', '{"c":1}', 'c', notAMember],
    ['NewUserRequest', '{"name":"bob","__proto__":{"roles":["admin"]}}', '__proto__', notAMember],
    ['NewUserRequest', `{"name":"bob","${'c'.repeat(80)}":1}`, `"${'c'.repeat(64)}"`, notAMember],
    ...['["x"]', 'true', '1', 'null', '{}'].map(
      (value) => ['NewUserRequest', `{"name":${value}}`, 'name', 'must be a string'] as const,
    ),
    ...['"x"', 'true', '1', 'null', '{}'].map(
      (value) => ['UserChangeRequest', `{"roles":${value}}`, 'roles', 'must be an array of strings'] as const,
    ),
    ...['"true"', '["x"]', '1', 'null', '""'].map(
      (value) => ['UserChangeRequest', `{"disabled":${value}}`, 'disabled', 'must be true or false'] as const,
    ),
    ['UserChangeRequest', '{"roles":["a",1]}', 'roles[1]', 'must be a string'],
    ['UserChangeRequest', `{"roles":[${'"a",'.repeat(24)}1]}`, 'roles[24]', 'must be a string'],
    ['NewApiKeyRequest', '{"name":"k","expiresAt":1}', 'expiresAt', 'must be a string'],
    ['NewApiKeyRequest', '{"name":"k","rights":"pull"}', 'rights', 'must be an array of strings'],
    ['NewApiKeyRequest', '{"name":"k","rights":[1]}', 'rights[0]', 'must be one of pull, push, delete, operate'],
    ['NewApiKeyRequest', '{"name":"k","repositories":[1]}', 'repositories[0]', 'must be a string'],
  ] as const)('of %s is refused with the name of the member: %s', async (schema, content, field, reason) => {
    expect(await faultOf(read(content, schema))).toEqual({ field, reason })
    expect(Object.getOwnPropertyNames({})).toEqual([])
  })

  test('may have as many entries as its schema allows, and not more', async () => {
    const entries = (count: number) => `{"name":"k","repositories":[${Array(count).fill('"a"').join()}]}`
    expect(await read(entries(64), 'NewApiKeyRequest', 1_000)).toHaveProperty('repositories.length', 64)
    expect(await faultOf(read(entries(65), 'NewApiKeyRequest', 1_000))).toEqual({
      field: 'repositories',
      reason: 'must have at most 64 entries',
    })
  })
})
