import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../src/adapters/metadata-sql/sqlite-database.ts'
import { FilesystemSigningKeys } from '../../src/adapters/signing-keys-filesystem/filesystem-signing-keys.ts'
import { hashApiKey } from '../../src/identity/api-keys.ts'
import { CachedIdentity } from '../../src/identity/cached-identity.ts'
import { EmbeddedIdentity } from '../../src/identity/embedded-identity.ts'
import { defaultRoles } from '../../src/identity/rights.ts'
import { Tokens, tokenLifetimeSeconds } from '../../src/identity/tokens.ts'
import type { Credential } from '../../src/ports/identity.ts'
import type { SigningKey, SigningKeys } from '../../src/ports/signing-keys.ts'
import { forgedTokens } from '../support/forged-tokens.ts'
import { useTemporaryFolders } from '../support/temporary-folders.ts'
import { identityContract } from './identity.ts'

const temporaryFolder = useTemporaryFolders('identity')
const opened: SqlMetadataStore[] = []
const noon = Date.UTC(2030, 0, 1, 12)

afterAll(async () => {
  for (const metadata of opened) await metadata.close()
})

function apiKey(secret: string): Credential {
  return { kind: 'api-key', secret }
}

function bearer(secret: string): Credential {
  return { kind: 'bearer', secret }
}

async function openEmbedded() {
  const folder = temporaryFolder()
  const metadata = await SqlMetadataStore.open(new SqliteDatabase(join(folder, 'metadata.sqlite')))
  opened.push(metadata)
  const { users } = metadata
  const keys = new FilesystemSigningKeys(join(folder, 'key.json'))
  const clock = { at: noon, now: () => clock.at }
  const tokens = await Tokens.open(keys)
  const alice = { name: 'alice', passwordHash: undefined, roles: ['writer'], account: 'acme', isDisabled: false }
  const user = await users.saveUser(alice)
  await users.saveApiKey(user.id, 'laptop', hashApiKey('a key of alice for her laptop'), undefined)
  await users.saveApiKey(user.id, 'robot', hashApiKey('another key of alice for a robot'), noon + 1)
  await users.saveApiKey(user.id, 'old', hashApiKey('an old key of alice'), noon)
  const identity = new EmbeddedIdentity({ users, clock, tokens, roles: defaultRoles })
  return { users, user, alice, keys, clock, tokens, identity }
}

async function openForContract() {
  const embedded = await openEmbedded()
  const { users, alice, tokens, keys, user } = embedded
  const bob = await users.saveUser({ ...alice, name: 'bob', isDisabled: true })
  await users.saveApiKey(bob.id, 'laptop', hashApiKey('a key of bob'), undefined)
  const token = await tokens.issue(user, noon)
  const { d: _secret, ...publicJwk } = (await keys.current(neverGenerate)).privateJwk
  const forged = await forgedTokens(token, publicJwk)
  return {
    ...embedded,
    token,
    good: {
      'an API key': apiKey('a key of alice for her laptop'),
      'an API key that ends later': apiKey('another key of alice for a robot'),
      'a token': bearer(token),
    },
    bad: {
      'an API key that nobody has': apiKey('nobody has this'),
      'an empty API key': apiKey(''),
      'an API key that has ended': apiKey('an old key of alice'),
      'an API key of a user who is disabled': apiKey('a key of bob'),
      'the hash of an API key': apiKey(hashApiKey('a key of alice for her laptop')),
      'a token as an API key': apiKey(token),
      'an API key as a token': bearer('a key of alice for her laptop'),
      'a token of a user who is disabled': bearer(await tokens.issue(bob, noon)),
      'a token of nobody': bearer(await tokens.issue({ ...bob, name: 'nobody' }, noon)),
      'a token that has ended': bearer(await tokens.issue(user, noon - tokenLifetimeSeconds * 1000 - 1000)),
      'a token of another Berth': bearer(await (await Tokens.open(new FreshKeys())).issue(user, noon)),
      ...Object.fromEntries(Object.entries(forged).map(([what, text]) => [`a token ${what}`, bearer(text)])),
    },
  }
}

function neverGenerate(): Promise<SigningKey> {
  throw new Error('the key was there already')
}

class FreshKeys implements SigningKeys {
  async current(generate: () => Promise<SigningKey>): Promise<SigningKey> {
    return generate()
  }
}

identityContract('embedded', openForContract)

identityContract('embedded, behind a cache', async () => {
  const embedded = await openForContract()
  return { ...embedded, identity: new CachedIdentity(embedded.identity, embedded.clock, 10_000) }
})

describe('identity, embedded', () => {
  test('a token is good until its end, and not a second longer', async () => {
    const { identity, clock, token } = await openForContract()

    clock.at = noon + tokenLifetimeSeconds * 1000 - 1000
    expect((await identity.authenticate(bearer(token)))?.expiresAt).toBe(noon + tokenLifetimeSeconds * 1000)
    clock.at = noon + tokenLifetimeSeconds * 1000
    expect(await identity.authenticate(bearer(token))).toBeUndefined()
  })

  test('tokens outlive a restart', async () => {
    const { users, clock, keys, token } = await openForContract()

    const restarted = new EmbeddedIdentity({ users, clock, tokens: await Tokens.open(keys), roles: defaultRoles })

    expect((await restarted.authenticate(bearer(token)))?.subject).toBe('alice')
  })

  test('a role that was taken away is gone for the tokens that named it too', async () => {
    const { identity, users, alice, token } = await openForContract()
    await users.saveUser({ ...alice, roles: ['reader', 'a role that nobody knows'] })

    expect((await identity.authenticate(bearer(token)))?.rights).toEqual(new Set(['pull']))
  })

  test('a user who is disabled is nobody from then on', async () => {
    const { identity, users, alice, good } = await openForContract()
    await users.saveUser({ ...alice, isDisabled: true })

    for (const credential of Object.values(good)) expect(await identity.authenticate(credential)).toBeUndefined()
  })
})

describe('identity, behind a cache', () => {
  test('is remembered no longer than the cache may, nor longer than the credential lives', async () => {
    const { identity: inner, users, alice, clock } = await openEmbedded()
    const identity = new CachedIdentity(inner, clock, 10_000)
    const [lasting, ending] = [apiKey('a key of alice for her laptop'), apiKey('another key of alice for a robot')]
    await Promise.all([identity.authenticate(lasting), identity.authenticate(ending)])
    await users.saveUser({ ...alice, isDisabled: true })

    clock.at = noon + 1
    expect(await identity.authenticate(ending)).toBeUndefined()
    clock.at = noon + 10_001
    expect(await identity.authenticate(lasting)).toBeUndefined()
  })

  test('one that is good again after it was refused is let in at once', async () => {
    const { identity: inner, users, alice, clock } = await openEmbedded()
    const identity = new CachedIdentity(inner, clock, 10_000)
    await users.saveUser({ ...alice, isDisabled: true })
    expect(await identity.authenticate(apiKey('a key of alice for her laptop'))).toBeUndefined()

    await users.saveUser(alice)

    expect(await identity.authenticate(apiKey('a key of alice for her laptop'))).toBeDefined()
  })
})
