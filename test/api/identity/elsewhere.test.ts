// With `auth.url` the users are another service's: of the identity interface only /me is ours to answer.
import { afterAll, describe, expect, test } from 'bun:test'
import { api, identity, startApi } from '../../support/api/api-server.ts'
import { json } from '../../support/api/managed-users.ts'
import { IdentityStub } from '../../support/identity/identity-stub.ts'

const stub = await IdentityStub.start()
stub.people.set('key-of-an-operator', { roles: ['admin'], user: 'olga', account: 'acme' })
stub.people.set('key-of-a-reader', { roles: ['reader'], user: 'ray', account: 'acme' })
const server = await startApi({ BERTH_AUTH__URL: stub.url })
afterAll(async () => {
  await server.stop()
  await stub.stop()
})

const key = 'key-of-an-operator'
const login = json({ username: 'admin', password: 'a password for tests only' })

const absent: readonly (readonly [string, string, object])[] = [
  ['POST', '/token/auth', login],
  ['GET', '/jwks.json', {}],
  ['GET', '/users', {}],
  ['POST', '/users', json({ name: 'ann' })],
  ['GET', '/users/admin', {}],
  ['PATCH', '/users/admin', json({ roles: [] })],
  ['GET', '/users/admin/keys', {}],
  ['POST', '/users/admin/keys', json({ name: 'laptop' })],
  ['DELETE', '/users/admin/keys/preset', {}],
]

describe('with another identity service', () => {
  test.each(absent)('%s %s is not there', async (method, path, question) => {
    const reply = await server.ask(method, identity + path, { key, ...question })

    expect([reply.status, reply.json()]).toEqual([404, { msg: 'no such endpoint' }])
  })

  test.each(absent.slice(2))('%s %s answers 401 to an anonymous caller and 403 to a reader', async (...row) => {
    const [method, path, question] = row
    const ask = async (by: string) => (await server.ask(method, identity + path, { ...question, key: by })).status

    expect([await ask('none'), await ask('key-of-a-reader')]).toEqual([401, 403])
  })

  test('/me is, and tells what the service says', async () => {
    const reply = await server.ask('GET', `${identity}/me`, { key })

    expect([reply.status, reply.json()]).toMatchObject([200, { roles: ['admin'], user: 'olga', account: 'acme' }])
  })

  test('the credentials in the settings of the embedded service are refused', async () => {
    expect((await server.ask('GET', `${api}/stats`)).status).toBe(401)
  })

  test('the service gets no request for a login attempt', () => {
    expect(stub.strayCalls).toEqual([])
    expect(stub.calls.some(({ secret }) => secret.includes('password'))).toBe(false)
  })
})
