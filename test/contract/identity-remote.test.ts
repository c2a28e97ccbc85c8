import { afterAll, beforeAll } from 'bun:test'
import { CachedIdentity } from '../../src/identity/cached-identity.ts'
import type { Credential } from '../../src/ports/identity.ts'
import { forgedTokens } from '../support/identity/forged-tokens.ts'
import { IdentityStub } from '../support/identity/identity-stub.ts'
import { policy } from '../support/identity/remembering.ts'
import { aliceSaid, apiKey, bearer, noon, openRemote } from '../support/identity/remote-identity.ts'
import { audience, issuer, TokenIssuer } from '../support/identity/token-issuer.ts'
import { identityContract, type OpenedIdentity } from './identity.ts'

let stub: IdentityStub
let service: TokenIssuer

beforeAll(async () => {
  stub = await IdentityStub.start()
  service = await TokenIssuer.start()
})

afterAll(async () => {
  await stub.stop()
  await service.stop()
})

const bad: Record<string, Credential> = {
  'an API key that nobody has': apiKey('nobody has this'),
  'an empty API key': apiKey(''),
  'an empty token': bearer(''),
  'a token that nobody has': bearer('nobody-has-this'),
  'an API key with a space': apiKey('a-key-of-alice-for-her-laptop '),
  'an API key of more than one line': apiKey('a-key-of-alice-for-her-laptop\r\nx-api-key: y'),
  'an API key that no header can hold': apiKey('a-key-of-alice-for-her-laptop\u00e9'),
}

/** A service that knows its tokens by itself: to us they are texts like any other. */
async function openAsked(): Promise<OpenedIdentity> {
  const good = {
    'an API key': apiKey('a-key-of-alice-for-her-laptop'),
    'another API key': apiKey('another-key-of-alice-for-a-robot'),
    'a token': bearer('an-opaque-token-of-alice'),
    'a token that tells of itself': bearer(await service.sign()),
  }
  for (const { secret } of Object.values(good)) stub.people.set(secret, aliceSaid)
  return { identity: openRemote(stub.url), good, bad }
}

/** Tokens with a signature are checked here; whatever else comes is asked about. */
async function openChecked(): Promise<OpenedIdentity> {
  const { good, bad: others } = await openAsked()
  const now = noon / 1000
  const token = await service.sign({}, { header: { typ: 'JWT' } })
  const rolesElsewhere = await service.sign({ roles: undefined })
  stub.people.set(rolesElsewhere, aliceSaid)
  const key = await service.addKey('EdDSA')
  const otherAlgorithm = await service.sign({}, { key })
  const forged = await forgedTokens(otherAlgorithm, key.publicJwk)
  const tokens = { jwksUrl: service.jwksUrl, issuer, audience, algorithms: ['ES256', 'EdDSA'], skewMs: 30_000 }
  return {
    identity: openRemote(stub.url, { tokens }),
    good: {
      ...good,
      'a token that is checked here': bearer(token),
      'a token of another algorithm': bearer(otherAlgorithm),
      'a token without roles': bearer(rolesElsewhere),
    },
    bad: {
      ...others,
      ...Object.fromEntries(Object.entries(forged).map(([what, text]) => [`a token ${what}`, bearer(text)])),
      'a token as an API key': apiKey(token),
      'a token that has ended': bearer(await service.sign({ exp: now - 31 })),
      'a token without an end': bearer(await service.sign({ exp: undefined })),
      'a token of another issuer': bearer(await service.sign({ iss: 'https://others.example.com' })),
      'a token for another audience': bearer(await service.sign({ aud: 'billing' })),
    },
  }
}

identityContract('remote', openAsked)
identityContract('remote, with tokens that are checked here', openChecked)
identityContract('remote, behind a memory', async () => {
  const opened = await openChecked()
  return { ...opened, identity: new CachedIdentity(opened.identity, { now: () => noon }, policy) }
})
