import { systemClock } from '../adapters/clock-system/system-clock.ts'
import { RemoteIdentity } from '../adapters/identity-remote/remote-identity.ts'
import type { Application } from '../http/exchange.ts'
import { isGeneratedKey } from '../identity/api-key-secrets.ts'
import { KeyUseRecorder } from '../identity/api-keys.ts'
import { CachedIdentity, type CachePolicy } from '../identity/cached-identity.ts'
import { EmbeddedIdentity } from '../identity/embedded-identity.ts'
import { FailureLimits } from '../identity/failure-limits.ts'
import { type Admin, createFirstKey, ensureAdmin } from '../identity/first-admin.ts'
import { IdentityByCredential } from '../identity/identity-by-credential.ts'
import { KeyRing } from '../identity/key-ring.ts'
import { rightsOf } from '../identity/rights.ts'
import { ScopedTokens } from '../identity/scoped-tokens.ts'
import { Tokens } from '../identity/tokens.ts'
import type { Clock } from '../ports/clock.ts'
import type { Identity, Principal } from '../ports/identity.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { SigningKeys } from '../ports/signing-keys.ts'
import type { Config } from './settings.ts'
import type { SharedParts } from './workers/shared-parts.ts'

/** What the operator needs for the first login. */
export interface Welcome {
  /** The administrator's first API key, if it was created just now. It is shown once. */
  readonly firstApiKey: string | undefined
  /** Set while the administrator has no password and no API key was ever used: the user and a free name for a new key. */
  readonly missingKey: { readonly user: string; readonly keyName: string } | undefined
}

const emptyWelcome: Welcome = { firstApiKey: undefined, missingKey: undefined }

/** Authentication, as the settings want it. */
export interface OpenedIdentity {
  readonly app: Pick<Application, 'identity' | 'failures' | 'anonymous' | 'scopedTokens' | 'embedded'>
  /** Empties the caches of credentials in this process. */
  readonly clearHere: () => void
  /** The limits for failed logins of this process. */
  readonly failures: FailureLimits
  readonly keys: KeyRing
  readonly uses: KeyUseRecorder
  /** What the first start shows to the operator. Call it when the port is open. */
  readonly welcome: () => Promise<Welcome>
}

export type Warn = (message: string, fields?: Readonly<Record<string, unknown>>) => void

const noAccountWarning =
  'the /me of the identity service named no account for a caller: the account comes from the claims of the token, and an API key, which has no claims, leads to the account default; let /me name the account in one of auth.account_fields'

/** Opens the remote identity service if `auth.url` is set, otherwise the embedded one. Both are behind a cache. */
export async function openIdentity(
  config: Config,
  { metadata, signingKeys }: { readonly metadata: MetadataStore; readonly signingKeys: SigningKeys },
  clock: Clock,
  warn: Warn = () => undefined,
  { failures: limitsOfServer, clearElsewhere }: Pick<SharedParts, 'failures' | 'clearElsewhere'> = {},
): Promise<OpenedIdentity> {
  const keys = await openKeys(signingKeys, config, clock)
  const uses = new KeyUseRecorder(metadata.apiKeys)
  const scopedTokens = new ScopedTokens(keys, clock, config.scopedTokenMs)
  const scoped = new CachedIdentity(scopedTokens, clock, scopedPolicy)
  const withCache = (inner: Identity, policy: CachePolicy) =>
    new IdentityByCredential(
      scoped,
      new CachedIdentity(inner, clock, policy),
      config.authUrl === undefined,
      clock,
      clearElsewhere,
    )
  const limitsUndecided = config.authUrl !== undefined
  const failures = new FailureLimits(failureSettings(config), clock, { limitsUndecided })
  const shared = { failures: limitsOfServer ?? failures, scopedTokens }
  if (config.authUrl !== undefined) {
    const identity = withCache(remoteIdentity(config, config.authUrl, clock, warn), remotePolicy(config))
    const app = {
      ...shared,
      identity,
      anonymous: anonymousPrincipal(config, 'default'),
      embedded: undefined,
    }
    return { app, keys, uses, failures, clearHere: () => identity.clearHere(), welcome: async () => emptyWelcome }
  }
  const admin = await ensureAdmin(metadata, {
    name: config.adminName,
    apiKey: config.adminApiKey,
    password: config.adminPassword,
  })
  const tokens = new Tokens(keys, clock)
  const { users, apiKeys } = metadata
  const embedded = new EmbeddedIdentity({ users, apiKeys, uses, clock, tokens, roles: config.roles })
  const identity = withCache(embedded, embeddedPolicy(config))
  const app = {
    ...shared,
    identity,
    anonymous: anonymousPrincipal(config, admin.account),
    embedded: {
      tokens,
      keys,
      roles: config.roles,
      keysPerUserMax: config.keysPerUser,
      usersPerAccountMax: config.usersPerAccount,
    },
  }
  const clearHere = () => identity.clearHere()
  return { app, keys, uses, failures, clearHere, welcome: () => welcome(config, metadata, admin) }
}

async function welcome(config: Config, { apiKeys }: MetadataStore, admin: Admin): Promise<Welcome> {
  const firstApiKey = await createFirstKey({ apiKeys }, admin)
  const isKnown = admin.hasPassword || config.adminApiKey !== undefined || (await apiKeys.hasAnyBeenUsed())
  if (isKnown) return { firstApiKey, missingKey: undefined }
  const taken = new Set((await apiKeys.list(admin.userId)).map(({ name }) => name))
  return { firstApiKey, missingKey: { user: config.adminName, keyName: freeName('mine', taken) } }
}

/** The name, or the first of `name-2`, `name-3`... that is not taken. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name
  for (let number = 2; taken.has(free); number += 1) free = `${name}-${number}`
  return free
}

/** Commands use the clock of the machine. */
export function openKeys(
  signingKeys: SigningKeys,
  { keyRotationMs }: Pick<Config, 'keyRotationMs'>,
  clock: Clock = systemClock,
): Promise<KeyRing> {
  return KeyRing.open(signingKeys, clock, keyRotationMs)
}

function remoteIdentity(config: Config, url: string, clock: Clock, warn: Warn): RemoteIdentity {
  const { jwksUrl, jwtIssuer: issuer, jwtAudience: audience, jwtAlgorithms: algorithms, jwtSkewMs: skewMs } = config
  return new RemoteIdentity({
    url,
    grantsFor: (roles) => [{ rights: rightsOf(roles, config.roles) }],
    clock,
    timeoutMs: config.authTimeoutMs,
    callsMax: config.authCalls,
    queueMax: config.authQueue,
    accountFields: config.authAccountFields,
    isApiKey: isGeneratedKey,
    onNoAccount: () => warn(noAccountWarning, { fields: config.authAccountFields }),
    tokens: jwksUrl === undefined ? undefined : { jwksUrl, issuer, audience, algorithms, skewMs },
  })
}

function remotePolicy(config: Config): CachePolicy {
  return {
    goodMs: config.authGoodMs,
    refreshAfterMs: config.authRefreshMs,
    badMs: config.authBadMs,
    outageMs: config.authOutageMs,
    retryMs: 2_000,
    goodEntriesMax: config.authCacheEntries,
  }
}

/** A scoped token holds all its rights. It is verified again only because its signing key may have been removed. */
const scopedPolicy: CachePolicy = {
  goodMs: 60_000,
  refreshAfterMs: Number.POSITIVE_INFINITY,
  badMs: 0,
  outageMs: 0,
}

/** The embedded service uses the database of the registry. If that is down, cached callers would be of no use. */
function embeddedPolicy({ identityCacheMs, authCacheEntries }: Config): CachePolicy {
  return {
    goodMs: identityCacheMs,
    refreshAfterMs: Number.POSITIVE_INFINITY,
    badMs: 0,
    outageMs: 0,
    goodEntriesMax: authCacheEntries,
  }
}

function failureSettings(config: Config) {
  return { perMinute: config.failuresPerMinute, burst: config.failureBurst, pauseMs: config.failurePauseMs }
}

function anonymousPrincipal({ anonymousPull, anonymousAccount }: Config, usualAccount: string): Principal | undefined {
  if (anonymousPull.length === 0) return undefined
  return {
    account: anonymousAccount ?? usualAccount,
    subject: 'anonymous',
    roles: [],
    grants: [{ rights: new Set(['pull']), repositories: anonymousPull }],
    fingerprint: 'anonymous',
    kind: 'anonymous',
    catalog: 'none',
  }
}
