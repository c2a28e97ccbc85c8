// Whom an answer of the service describes.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import type { RemoteIdentityOptions } from '../../../../src/adapters/identity-remote/remote-identity.ts'
import { fingerprintOf } from '../../../../src/lib/hashing.ts'
import { Unavailable } from '../../../../src/oci/errors.ts'
import type { Credential, Principal } from '../../../../src/ports/identity.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { IdentityStub } from '../../../support/identity/identity-stub.ts'
import { apiKey, bearer, noon, openRemote } from '../../../support/identity/remote-identity.ts'
import { TokenIssuer } from '../../../support/identity/token-issuer.ts'

const stub = await IdentityStub.start()
const tokens = await TokenIssuer.start()
afterAll(() => Promise.all([stub.stop(), tokens.stop()]))

const key = apiKey('a-key')

beforeEach(() => stub.people.clear())

type Answer = Readonly<Record<string, unknown>>

async function principalOf(
  answer: Answer,
  credential: Credential = key,
  more: Partial<RemoteIdentityOptions> = {},
): Promise<Principal> {
  stub.people.set(credential.secret, { roles: [], ...answer })
  const principal = await openRemote(stub.url, more).authenticate(credential)
  if (principal === undefined) throw new Error('nobody')
  return principal
}

async function tokenWith(claims: Answer): Promise<Credential> {
  return bearer(await tokens.sign({ sub: undefined, account: undefined, ...claims }))
}

const uuid = '0192a1f0-1c5e-7d3a-9d58-7a0c2a1f9b11'

/** What the answer says, what the claims of the token say, and the account. Without claims, the credential is an API key. */
const accounts: readonly (readonly [words: string, Answer, claims: Answer | undefined, account: string])[] = [
  ['the first field that exists', { scope: 'first', account: 'second' }, undefined, 'first'],
  ['the next field, if there is no first', { account: 'second' }, undefined, 'second'],
  ['the next field, if the first is empty', { scope: '', account: 'second' }, undefined, 'second'],
  ['the next field, if the first is no name', { scope: ['first'], account: 'second' }, undefined, 'second'],
  ['a number too', { account: 42 }, undefined, '42'],
  ['a UUID', { scope: uuid }, undefined, uuid],
  ['no list of OAuth scopes', { scope: 'openid email', account: 'second' }, undefined, 'second'],
  ['no OAuth scope', { scope: 'repo:read' }, undefined, 'default'],
  ['no scope of OpenID Connect', { scope: 'openid' }, undefined, 'default'],
  ['`default`, if nothing names one', { tenant: 'third' }, undefined, 'default'],
  ['not `default` for an object', { account: { id: 7 } }, undefined, 'unavailable'],
  ['not `default` for a list', { account: ['a'] }, undefined, 'unavailable'],
  ['not `default` for a boolean', { account: true }, undefined, 'unavailable'],
  ['not `default` for a fraction', { account: 1.5 }, undefined, 'unavailable'],
  ['not `default` for an object beside an empty text', { scope: {}, account: '' }, undefined, 'unavailable'],
  ['that of the answer, whatever the claims say', { account: 'answered' }, { scope: 'of-the-token' }, 'answered'],
  ['that of the claims, if the answer names none', {}, { account: 'of the token' }, 'of the token'],
  ['that of the claims, if the answer has OAuth scopes', { scope: 'repo:read' }, { scope: 'acme' }, 'acme'],
  ['`default`, if both have OAuth scopes', { scope: 'openid' }, { scope: 'openid email' }, 'default'],
  ['`default`, if the claims have a list of OAuth scopes', {}, { scope: ['openid', 'read'] }, 'default'],
]

describe('the account', () => {
  test.each(accounts)('is %s', async (_, answer, claims, account) => {
    const credential = claims === undefined ? key : await tokenWith(claims)
    const found = principalOf(answer, credential).then(
      (principal) => principal.account,
      (error: unknown) => (error instanceof Unavailable ? 'unavailable' : error),
    )
    expect(await found).toBe(account)
  })

  test('is found in the fields that the settings name', async () => {
    const fields = { accountFields: ['tenant'] }

    expect((await principalOf({ tenant: 'third', scope: 'first' }, key, fields)).account).toBe('third')
    expect((await principalOf({ scope: 'first' }, key, fields)).account).toBe('default')
    expect((await principalOf({}, key, { accountFields: ['constructor', '__proto__'] })).account).toBe('default')
  })

  test.each([
    ['of an API key', async () => key],
    ['of a token, though its claims name one', () => tokenWith({ account: 'of the token' })],
  ])('that the answer does not name is told once: %s', async (_, make) => {
    const credential = await make()
    let told = 0
    const identity = openRemote(stub.url, { onNoAccount: () => ++told })
    const tellings: number[] = []
    for (const answer of [{ roles: [], account: 'acme' }, { roles: [] }, { roles: [] }]) {
      stub.people.set(credential.secret, answer)
      await identity.authenticate(credential)
      tellings.push(told)
    }

    expect(tellings).toEqual([0, 1, 1])
  })

  test('is not what an API key says that looks like a token', async () => {
    const { secret } = await tokenWith({ account: 'of the token', sub: 'mallory', exp: 1 })
    const found = await principalOf({}, apiKey(secret))

    expect([found.account, found.subject, found.expiresAt]).toEqual([
      'default',
      `key:${fingerprintOf(secret)}`,
      undefined,
    ])
  })

  test.each([
    ['too long an account', { scope: 'a'.repeat(256), account: 'other' }],
    ['an account with a line break', { scope: 'a\nb', account: 'other' }],
    ['an account with a zero', { scope: 'acme\0', account: 'other' }],
    ['half of a character in an account', { scope: 'acme\ud800', account: 'other' }],
    ['too long a subject', { user: 'a'.repeat(256) }],
  ])('and the subject must be storable; otherwise the service is unavailable: %s', async (_, answer) => {
    const identity = openRemote(stub.url)
    stub.people.set(key.secret, { roles: ['admin'], ...answer })
    // More often than the service may fail, because the name of one caller is no sign that the service is down.
    for (let time = 0; time < 6; time += 1) {
      const error = (await errorOf(identity.authenticate(key))) as Unavailable
      expect(error).toBeInstanceOf(Unavailable)
      expect((error.cause as Error).message).toBe('a name that cannot be kept')
    }
  })
})

describe('the subject', () => {
  test('is the first field of these that holds a text', async () => {
    const fields = ['user', 'sub', 'username', 'name', 'email']
    for (const [index, field] of fields.entries()) {
      const answer = Object.fromEntries(fields.slice(index).map((name) => [name, `by ${name}`]))
      expect((await principalOf(answer)).subject).toBe(`by ${field}`)
      expect((await principalOf({ ...answer, [field]: '' })).subject).not.toBe('')
    }
  })

  test("is otherwise the token's, or one of the key alone", async () => {
    const credentials = [await tokenWith({ sub: 'alice' }), key, apiKey('another-key')]
    const found = await Promise.all(credentials.map((credential) => principalOf({}, credential)))

    const ofKeys = [key.secret, 'another-key'].map((secret) => `key:${fingerprintOf(secret)}`)
    expect(found.map(({ subject }) => subject)).toEqual(['alice', ...ofKeys])
  })
})

describe('the roles', () => {
  test('may be objects with a name; what is neither is ignored', async () => {
    const odd = [{ id: 7, name: 'writer' }, 'auditor', { id: 8 }, 7, null, ['admin'], { name: ['admin'] }]

    expect((await principalOf({ roles: odd })).roles).toEqual(['writer', 'auditor'])
  })

  test('give what the settings say, and unknown ones nothing', async () => {
    const { roles, grants } = await principalOf({ roles: ['reader', 'king of the world'] })

    expect(roles).toEqual(['reader', 'king of the world'])
    expect(grants).toEqual([{ rights: new Set(['pull']) }])
    expect((await principalOf({ roles: [] })).grants).toEqual([{ rights: new Set() }])
  })

  test('all count, though only the first hundred are shown', async () => {
    const many = Array.from({ length: 500 }, (_, index) => `role ${index}`)
    const found = await principalOf({ roles: [...many, 'writer'] })

    expect(found.roles).toEqual(many.slice(0, 100))
    expect(found.grants).toEqual([{ rights: new Set(['pull', 'push', 'delete']) }])
  })
})

test("the end is the token's, and none where the token tells none or is no such token", async () => {
  const token = await tokenWith({ exp: noon / 1000 + 60 })
  expect((await principalOf({}, token)).expiresAt).toBe(noon + 60_000)
  for (const credential of [await tokenWith({ exp: undefined }), bearer('opaque'), bearer('three.part.text'), key]) {
    expect((await principalOf({}, credential)).expiresAt).toBeUndefined()
  }
})

test('an answer cannot reach what objects have by nature', async () => {
  const found = await principalOf(JSON.parse('{"__proto__": {"account": "mallory", "roles": ["admin"]}, "roles": []}'))

  expect([found.account, found.grants]).toEqual(['default', [{ rights: new Set() }]])
})
