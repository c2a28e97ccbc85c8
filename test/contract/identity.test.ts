import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../src/adapters/metadata-sql/sqlite-database.ts'
import { FilesystemSigningKeys } from '../../src/adapters/signing-keys-filesystem/filesystem-signing-keys.ts'
import { hashApiKey } from '../../src/identity/api-key-secrets.ts'
import { KeyUseRecorder } from '../../src/identity/api-keys.ts'
import { CachedIdentity, type CachePolicy } from '../../src/identity/cached-identity.ts'
import { EmbeddedIdentity } from '../../src/identity/embedded-identity.ts'
import { KeyRing } from '../../src/identity/key-ring.ts'
import { defaultRoles } from '../../src/identity/rights.ts'
import { Tokens, tokenLifetimeSeconds } from '../../src/identity/tokens.ts'
import type { Credential } from '../../src/ports/identity.ts'
import type { NewUser, User, Users } from '../../src/ports/users.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { forgedTokens } from '../support/identity/forged-tokens.ts'
import { MemorySigningKeys, MovingClock } from '../support/identity/memory-signing-keys.ts'
import { identityContract } from './identity.ts'

const temporaryFolder = useTemporaryFolders('identity')
const opened: SqlMetadataStore[] = []
const noon = Date.UTC(2030, 0, 1, 12)
const policy: CachePolicy = { goodMs: 10_000, refreshAfterMs: Number.POSITIVE_INFINITY, badMs: 0, outageMs: 0 }

afterAll(async () => {
  for (const metadata of opened) await metadata.close()
})

function apiKey(secret: string): Credential {
  return { kind: 'api-key', secret }
}

function bearer(secret: string): Credential {
  return { kind: 'bearer', secret }
}

async function add(users: Users, rest: Partial<NewUser>): Promise<User> {
  const alice = { name: 'alice', passwordHash: undefined, roles: ['writer'], account: 'acme', isDisabled: false }
  const added = await users.add({ ...alice, ...rest })
  if (added === undefined) throw new Error('there was one of that name already')
  return added
}

async function openEmbedded() {
  const folder = temporaryFolder()
  const metadata = await SqlMetadataStore.open(new SqliteDatabase(join(folder, 'metadata.sqlite')))
  opened.push(metadata)
  const { users, apiKeys } = metadata
  const keeper = new FilesystemSigningKeys(join(folder, 'identity'))
  const clock = new MovingClock(noon)
  const keys = await KeyRing.open(keeper, clock, 0)
  const tokens = new Tokens(keys, clock)
  const user = await add(users, {})
  const addKey = ({ id }: User, name: string, secret: string, expiresAt?: number) => {
    const limits = { expiresAt, rights: undefined, repositories: undefined }
    return apiKeys.add({ userId: id, name, secretHash: hashApiKey(secret), ...limits })
  }
  await addKey(user, 'laptop', 'a key of alice for her laptop')
  await addKey(user, 'robot', 'another key of alice for a robot', noon + 1)
  await addKey(user, 'old', 'an old key of alice', noon)
  const uses = new KeyUseRecorder(apiKeys)
  const open = (its: Tokens) => new EmbeddedIdentity({ users, apiKeys, uses, clock, tokens: its, roles: defaultRoles })
  return { users, apiKeys, user, keeper, keys, clock, tokens, addKey, open, identity: open(tokens) }
}

async function openForContract() {
  const embedded = await openEmbedded()
  const { users, apiKeys, tokens, keys, user, addKey, clock } = embedded
  const bob = await add(users, { name: 'bob', isDisabled: true })
  await addKey(bob, 'laptop', 'a key of bob')
  await addKey(user, 'lost', 'a lost key of alice')
  await apiKeys.remove(user.id, 'lost')
  const token = await tokens.issue(user)
  const [publicJwk = {}] = await keys.publicKeys()
  const forged = await forgedTokens(token, publicJwk)
  const others = new Tokens(await KeyRing.open(new MemorySigningKeys(), clock, 0), clock)
  const longAgo = new Tokens(keys, new MovingClock(noon - tokenLifetimeSeconds * 1000 - 1000))
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
      'an API key that was revoked': apiKey('a lost key of alice'),
      'an API key of a user who is disabled': apiKey('a key of bob'),
      'the hash of an API key': apiKey(hashApiKey('a key of alice for her laptop')),
      'a token as an API key': apiKey(token),
      'an API key as a token': bearer('a key of alice for her laptop'),
      'a token of a user who is disabled': bearer(await tokens.issue(bob)),
      'a token of nobody': bearer(await tokens.issue({ ...bob, name: 'nobody' })),
      'a token that has ended': bearer(await longAgo.issue(user)),
      'a token of another password': bearer(await tokens.issue({ ...user, tokenEpoch: user.tokenEpoch - 1 })),
      'a token of another Berth': bearer(await others.issue(user)),
      ...Object.fromEntries(Object.entries(forged).map(([what, text]) => [`a token ${what}`, bearer(text)])),
    },
  }
}

identityContract('embedded', openForContract)

identityContract('embedded, remembered', async () => {
  const embedded = await openForContract()
  return { ...embedded, identity: new CachedIdentity(embedded.identity, embedded.clock, policy) }
})

describe('identity, embedded', () => {
  test('a token is good until its end, and not a second longer', async () => {
    const { identity, clock, token } = await openForContract()

    clock.at = noon + tokenLifetimeSeconds * 1000 - 1
    expect((await identity.authenticate(bearer(token)))?.expiresAt).toBe(noon + tokenLifetimeSeconds * 1000)
    clock.at = noon + tokenLifetimeSeconds * 1000
    expect(await identity.authenticate(bearer(token))).toBeUndefined()
  })

  test('tokens outlive a restart', async () => {
    const { open, keeper, clock, token } = await openForContract()

    const restarted = open(new Tokens(await KeyRing.open(keeper, clock, 0), clock))

    expect((await restarted.authenticate(bearer(token)))?.subject).toBe('alice')
  })

  test('a role that was taken away is gone for the tokens that named it too', async () => {
    const { identity, users, user, token } = await openForContract()
    await users.change(user.id, { roles: ['reader', 'a role that nobody knows'] })

    expect((await identity.authenticate(bearer(token)))?.grants).toEqual([{ rights: new Set(['pull']) }])
  })

  test('a disabled user is refused, and after being enabled again can use the old keys, but not the old tokens', async () => {
    const { identity, users, user, good, token } = await openForContract()
    await users.change(user.id, { isDisabled: true })
    for (const credential of Object.values(good)) expect(await identity.authenticate(credential)).toBeUndefined()

    await users.change(user.id, { isDisabled: false })
    expect((await identity.authenticate(good['an API key']))?.subject).toBe('alice')
    expect(await identity.authenticate(bearer(token))).toBeUndefined()
  })
})
