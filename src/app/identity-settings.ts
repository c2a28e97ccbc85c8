import { allRights, defaultRoles } from '../identity/rights.ts'
import { serviceUrl } from './address-kinds.ts'
import {
  algorithmList,
  apiKey,
  choice,
  duration,
  optionalText,
  patternList,
  roleMap,
  secret,
  setting,
  textList,
  userName,
  wholeNumber,
} from './setting-kinds.ts'

/** Settings of authentication and of the identity services. A part of the table in settings.ts. */
export const identitySettings = {
  authUrl: setting(
    'auth.url',
    serviceUrl('https://identity.example.com'),
    'Address of a remote identity service that checks credentials. If it is not set, Berth uses its embedded identity service.',
  ),
  challenge: setting(
    'auth.challenge',
    choice('basic', 'bearer'),
    'How clients of the registry are asked to authenticate. `basic`: with credentials in each request. `bearer`: with a short-lived token that they get at `_token`.',
  ),
  scopedTokenMs: setting(
    'auth.token_lifetime',
    duration('15m', '1m', '24h'),
    'How long a token from `_token` is valid.',
  ),
  anonymousPull: setting('auth.anonymous_pull', patternList(), 'Repositories that can be pulled without credentials.'),
  anonymousAccount: setting(
    'auth.anonymous_account',
    optionalText(),
    'Account whose repositories can be pulled without credentials. The default is the account of the first user, or the account `default` if `auth.url` is set.',
  ),
  failuresPerMinute: setting(
    'auth.failures_per_minute',
    wholeNumber(10, 1),
    'The sustained limit for failed logins: attempts per minute that one client address may make with bad credentials. The same limit applies to each bad credential.',
  ),
  failureBurst: setting(
    'auth.failure_burst',
    wholeNumber(20, 1),
    'How many failed logins may happen at once before `auth.failures_per_minute` applies.',
  ),
  failurePauseMs: setting(
    'auth.failure_pause',
    duration('30s', '1s', '1h'),
    'How long further attempts get 429 after the limit for failed logins was exceeded.',
  ),
  authGoodMs: setting(
    'auth.cache',
    duration('60s', '0s', '1h'),
    'With `auth.url`: how long a valid credential is cached. A revoked credential may still work for this long.',
  ),
  authRefreshMs: setting(
    'auth.cache_refresh',
    duration('45s', '0s', '1h'),
    'With `auth.url`: the age at which a cached credential is checked again in the background.',
  ),
  authBadMs: setting(
    'auth.cache_refused',
    duration('10s', '0s', '10m'),
    'With `auth.url`: how long a rejected credential is cached.',
  ),
  authOutageMs: setting(
    'auth.outage',
    duration('5m', '0s', '24h'),
    'With `auth.url`: while the identity service does not answer, a credential that was valid this long ago may still pull and push. `0` turns this off.',
  ),
  authCacheEntries: setting(
    'auth.cache_entries',
    wholeNumber(10_000, 100, 1_000_000),
    'The largest number of valid credentials in the cache, for the embedded and for a remote identity service. Those that were not used for the longest time are removed first.',
  ),
  authTimeoutMs: setting(
    'auth.timeout',
    duration('3s', '100ms', '60s'),
    'With `auth.url`: the longest time that the identity service may take to answer.',
  ),
  authCalls: setting(
    'auth.calls',
    wholeNumber(64, 1, 10_000),
    'With `auth.url`: the largest number of simultaneous requests to the identity service.',
  ),
  authQueue: setting(
    'auth.queue',
    wholeNumber(256, 0, 100_000),
    'With `auth.url`: how many requests to the identity service may wait. Further requests get 503.',
  ),
  authAccountFields: setting(
    'auth.account_fields',
    textList('scope', 'account'),
    'With `auth.url`: names of fields that contain the account. Berth looks for them in the answer of the identity service, then in the claims of the token, and uses the first that it finds. Without any, the account is `default`.',
  ),
  jwksUrl: setting(
    'auth.jwks_url',
    serviceUrl('https://identity.example.com/jwks.json'),
    'With `auth.url`: address of public keys (JWKS). Berth verifies tokens with these keys. It asks the identity service only about tokens that contain no roles.',
  ),
  jwtIssuer: setting('auth.issuer', optionalText(), 'With `auth.jwks_url`: the issuer (`iss`) that tokens must have.'),
  jwtAudience: setting(
    'auth.audience',
    optionalText(),
    'With `auth.jwks_url`: the audience (`aud`) that tokens must have.',
  ),
  jwtAlgorithms: setting(
    'auth.algorithms',
    algorithmList('RS256', 'ES256', 'EdDSA'),
    'With `auth.jwks_url`: the signature algorithms that are accepted.',
  ),
  jwtSkewMs: setting(
    'auth.clock_skew',
    duration('30s', '0s', '60s'),
    'With `auth.jwks_url`: the largest accepted difference between the clocks of Berth and the token issuer.',
  ),

  adminName: setting('identity.admin_name', userName('admin'), 'Name of the first user.'),
  adminApiKey: setting(
    'identity.admin_api_key',
    apiKey(),
    'API key of the first user. If it is not set, Berth creates a key at the first start and prints it once.',
  ),
  adminPassword: setting(
    'identity.admin_password',
    secret(),
    'Password of the first user. If it is not set, the first user cannot log in with a password.',
  ),
  identityCacheMs: setting(
    'identity.cache',
    duration('10s', '0s', '60s'),
    'How long the embedded identity service caches a valid credential. A revoked credential may still work for this long.',
  ),
  keyRotationMs: setting(
    'identity.key_rotation',
    duration('30d', '0s'),
    'How often the key that signs tokens is replaced. `0`: only `berth signing-key rotate` replaces it.',
  ),
  usersPerAccount: setting(
    'limits.users_per_account',
    wholeNumber(1_000, 1),
    'The largest number of users in one account. Above it, `POST /users` is refused; `berth user add` still works.',
  ),
  keysPerUser: setting('limits.keys_per_user', wholeNumber(100, 1), 'The largest number of API keys of one user.'),
  roles: setting(
    'identity.roles',
    roleMap(defaultRoles, allRights),
    'Roles and their rights: pull, push, delete, operate.',
  ),
} as const
