// Tokens that are checked here, with the public keys of their issuer.

import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createPublicKey } from 'node:crypto'
import type { RemoteIdentityOptions, TokenRules } from '../../../../src/adapters/identity-remote/remote-identity.ts'
import { fingerprintOf } from '../../../../src/lib/hashing.ts'
import { Unavailable } from '../../../../src/oci/errors.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { forgedTokens } from '../../../support/identity/forged-tokens.ts'
import { IdentityStub } from '../../../support/identity/identity-stub.ts'
import { aliceSaid, apiKey, bearer, noon, openRemote } from '../../../support/identity/remote-identity.ts'
import { audience, issuer, TokenIssuer } from '../../../support/identity/token-issuer.ts'

const stub = await IdentityStub.start()
let service = await TokenIssuer.start()
afterAll(() => stub.stop())

beforeEach(async () => {
  stub.people.clear()
  stub.calls.length = 0
  service = await TokenIssuer.start()
})

afterEach(() => service.stop())

function open(rules: Partial<TokenRules> = {}, more: Partial<RemoteIdentityOptions> = {}) {
  const tokens = { jwksUrl: service.jwksUrl, issuer, audience, algorithms: ['RS256', 'ES256', 'EdDSA'], skewMs: 30_000 }
  return openRemote(stub.url, { tokens: { ...tokens, ...rules }, ...more })
}

async function find(token: string, rules: Partial<TokenRules> = {}) {
  return open(rules).authenticate(bearer(token))
}

describe('a good token', () => {
  test.each(['ES256', 'RS256', 'EdDSA'])('of %s is known without a request', async (algorithm) => {
    const key = await service.addKey(algorithm)
    const token = await service.sign({}, { key })

    expect(await find(token)).toEqual({
      account: 'acme',
      subject: 'alice',
      roles: ['writer'],
      grants: [{ rights: new Set(['pull', 'push', 'delete']) }],
      fingerprint: fingerprintOf(token),
      expiresAt: noon + 3_600_000,
    })
    expect(stub.calls).toEqual([])
  })

  test('without roles is asked about, and what the answer leaves open the token tells', async () => {
    for (const roles of [undefined, 'admin']) {
      const token = await service.sign({ roles })
      expect(await find(token)).toBeUndefined()
      stub.people.set(token, { roles: ['reader'] })
      expect(await find(token)).toMatchObject({ account: 'acme', subject: 'alice', roles: ['reader'] })
    }
  })

  test('of another kind than tokens of people is asked about, since the same key may sign it', async () => {
    for (const typ of ['berth-scoped+jwt', 'logout+jwt', 'dpop+jwt', 'JWE']) {
      const token = await service.sign({}, { header: { typ } })
      expect(await find(token)).toBeUndefined()
      expect(stub.calls.at(-1)?.secret).toBe(token)
    }
    for (const typ of ['JWT', 'jwt', 'at+jwt', 'application/at+jwt']) {
      expect((await find(await service.sign({}, { header: { typ } })))?.subject).toBe('alice')
    }
  })

  test('that limits its owner is as limited as an answer would be', async () => {
    const token = await service.sign({ rights: ['pull'], repositories: ['team/*'] })

    expect((await find(token))?.grants).toMatchObject([{ rights: new Set(['pull']), repositories: ['team/*'] }])
  })

  test('names the account in the fields that the settings name', async () => {
    const token = await service.sign({ tenant: 'umbrella' })

    expect((await open({}, { accountFields: ['tenant'] }).authenticate(bearer(token)))?.account).toBe('umbrella')
    expect((await open({}, { accountFields: ['nothing'] }).authenticate(bearer(token)))?.account).toBe('default')
  })

  test('needs neither issuer nor audience where none is set', async () => {
    const token = await service.sign({ iss: undefined, aud: undefined })

    expect((await find(token, { issuer: undefined, audience: undefined }))?.subject).toBe('alice')
    expect(await find(token, { issuer: undefined })).toBeUndefined()
    expect(await find(token, { audience: undefined })).toBeUndefined()
    // It may name more audiences than ours.
    expect((await find(await service.sign({ aud: ['billing', audience] })))?.subject).toBe('alice')
  })
})

// More times are in test/unit/lib/jwt.test.ts.
test('a token that has expired is good while clocks may differ, but is not remembered', async () => {
  const at = noon / 1000
  expect((await find(await service.sign({ exp: at - 29 })))?.expiresAt).toBe(noon - 29_000)
  expect(await find(await service.sign({ exp: at - 30 }))).toBeUndefined()
})

describe('a bad token is rejected without a request', () => {
  /** Even a service that would accept the token must not be asked. */
  async function expectNobody(token: string, rules: Partial<TokenRules> = {}): Promise<void> {
    stub.people.set(token, { roles: ['admin'] })
    expect(await find(token, rules)).toBeUndefined()
    expect(stub.calls).toEqual([])
  }

  test('another issuer or audience', async () => {
    await expectNobody(await service.sign({ iss: 'https://others.example.com' }))
    await expectNobody(await service.sign({ iss: `${issuer}/` }))
    await expectNobody(await service.sign({ aud: 'billing' }))
    await expectNobody(await service.sign({ aud: [] }))
  })

  test('an algorithm that does not count, though its key is published', async () => {
    const key = await service.addKey('RS512')
    await expectNobody(await service.sign({}, { key }))
    await expectNobody(await service.sign(), { algorithms: ['EdDSA'] })
  })

  test('keys that the token brings along, or names the address of', async () => {
    const foreignIssuer = await TokenIssuer.start()
    const key = await foreignIssuer.addKey('ES256', 'key 1')
    for (const header of [{}, { jwk: key.publicJwk }, { jku: foreignIssuer.jwksUrl }, { x5u: foreignIssuer.jwksUrl }]) {
      await expectNobody(await foreignIssuer.sign({}, { key, header }))
      await expectNobody(await foreignIssuer.sign({}, { key, header: { ...header, kid: undefined } }))
      await expectNobody(await foreignIssuer.sign({}, { key, header: { ...header, kid: foreignIssuer.jwksUrl } }))
    }
    expect(foreignIssuer.calls).toBe(0)
    await foreignIssuer.stop()
  })

  test('all that can be made of a good one and the public key', async () => {
    const key = await service.addKey('EdDSA')
    const good = await service.sign({}, { key })
    const algorithms = ['RS256', 'ES256', 'EdDSA', 'HS256', 'HS512', 'none']
    for (const [what, token] of Object.entries(await forgedTokens(good, key.publicJwk))) {
      expect({ what, found: await find(token, { algorithms }) }).toEqual({ what, found: undefined })
    }
    expect((await find(good))?.subject).toBe('alice')
  })

  test.each(['ES256', 'RS256'])('a public key of %s taken for a secret', async (algorithm) => {
    const { kid, publicJwk } = await service.addKey(algorithm)
    const pem = createPublicKey({ key: { ...publicJwk }, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
    for (const secret of [pem, JSON.stringify(publicJwk), String(publicJwk['n'] ?? publicJwk['x'])]) {
      const privateKey = new TextEncoder().encode(String(secret))
      const token = await service.sign({}, { key: { kid, algorithm: 'HS256', privateKey, publicJwk } })
      await expectNobody(token)
      await expectNobody(token, { algorithms: ['RS256', 'ES256', 'HS256'] })
    }
  })
})

test('the service is asked about opaque tokens, and about API keys whatever they look like', async () => {
  const token = await service.sign()
  for (const credential of [bearer('opaque'), bearer('two.parts'), apiKey(token), apiKey('key')]) {
    stub.people.set(credential.secret, aliceSaid)
    expect((await open().authenticate(credential))?.subject).toBe('alice')
    expect(stub.calls.at(-1)?.secret).toBe(credential.secret)
  }
  expect(service.calls).toBe(0)
})

test('no error of a key set that cannot be had holds the token', async () => {
  service.state = 'html'
  const token = await service.sign()
  const error = await errorOf(find(token))

  expect(error).toBeInstanceOf(Unavailable)
  expect(Bun.inspect(error, { depth: 20 })).not.toContain(token.slice(-20))
})
