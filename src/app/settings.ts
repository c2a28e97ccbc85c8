import { allRights, defaultRoles } from '../identity/rights.ts'
import { memorySettings } from './memory-settings.ts'
import {
  addressList,
  algorithmList,
  apiKey,
  byteCount,
  choice,
  duration,
  flag,
  optionalText,
  optionalUrl,
  patternList,
  roleMap,
  type Setting,
  secret,
  serviceUrl,
  setting,
  text,
  textList,
  userName,
  wholeNumber,
} from './setting-kinds.ts'
import { storeSettings } from './store-settings.ts'

/**
 * Every setting there is: its name in the file, its meaning, its default and its check. The name in the environment
 * follows from the name in the file: `server.port` is BERTH_SERVER__PORT.
 */
export const settingsTable = {
  ...storeSettings,

  host: setting('server.host', text('127.0.0.1'), 'Address to listen on; 0.0.0.0 for all.'),
  port: setting('server.port', wholeNumber(5000, 0, 65_535), 'Port to listen on; 0 picks a free one.'),
  publicUrl: setting(
    'server.public_url',
    optionalUrl(),
    'Address that users log in to, where a proxy stands in front.',
  ),
  docsUrl: setting(
    'server.docs_url',
    serviceUrl('https://docs.example.com/registry'),
    'Address of documentation for your users. The page at `/` links to it.',
  ),
  trustedProxies: setting(
    'server.trusted_proxies',
    addressList(),
    'Proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.',
  ),
  connectionsMax: setting(
    'server.connections_max',
    wholeNumber(0, 0),
    'The largest number of open descriptors above those at start: connections, files and store connections together. Above it, new connections are refused. 0: nine tenths of the descriptor limit (`ulimit -n`).',
  ),
  idleMs: setting(
    'server.idle',
    duration('30s', '8s', '255s'),
    'A connection that waits for a request for this long is cut.',
  ),
  shutdownDelayMs: setting(
    'server.shutdown_delay',
    duration('0s', '0s', '1h'),
    'How long to go on serving after SIGTERM, while /readyz says no, before the port closes.',
  ),
  drainMs: setting(
    'server.drain',
    duration('30s', '0s', '24h'),
    'How long running requests may go on after the port has closed.',
  ),

  rootMount: setting(
    'registry.root_mount',
    flag(true),
    'Serve the registry interface at /v2/ too, where most clients need it.',
  ),
  autoEnable: setting('accounts.auto_enable', flag(true), 'An account comes into being, enabled, on its first use.'),

  authUrl: setting(
    'auth.url',
    serviceUrl(),
    'The identity service that credentials are forwarded to; without it, the embedded one.',
  ),
  challenge: setting(
    'auth.challenge',
    choice('basic', 'bearer'),
    'What strangers are asked for at the registry: credentials with each request, or a token that they buy at `_token`.',
  ),
  scopedTokenMs: setting('auth.token_lifetime', duration('15m', '1m', '24h'), 'How long a token of `_token` is good.'),
  anonymousPull: setting(
    'auth.anonymous_pull',
    patternList(),
    'Repositories that anybody may pull from without credentials.',
  ),
  anonymousAccount: setting(
    'auth.anonymous_account',
    optionalText(),
    "Whose repositories those are; by default the first user's account, and with `auth.url` the account `default`.",
  ),
  failuresPerMinute: setting(
    'auth.failures_per_minute',
    wholeNumber(10, 1),
    'Bad credentials that one address, and uses that one bad credential, may try in the long run.',
  ),
  failureBurst: setting('auth.failure_burst', wholeNumber(20, 1), 'As many of them may come at once.'),
  failurePauseMs: setting('auth.failure_pause', duration('30s', '1s', '1h'), 'How long is refused who tried more.'),
  authGoodMs: setting(
    'auth.cache',
    duration('60s', '0s', '1h'),
    'With `auth.url`: how long a good credential is remembered, which is how long a revoked one may still work.',
  ),
  authRefreshMs: setting(
    'auth.cache_refresh',
    duration('45s', '0s', '1h'),
    'After this long it is asked about again while requests go on.',
  ),
  authBadMs: setting('auth.cache_refused', duration('10s', '0s', '10m'), 'How long a bad credential is remembered.'),
  authOutageMs: setting(
    'auth.outage',
    duration('5m', '0s', '24h'),
    'While the identity service does not answer, who was good this long ago may pull and push; 0 turns that off.',
  ),
  authTimeoutMs: setting('auth.timeout', duration('3s', '100ms', '60s'), 'How long the identity service may take.'),
  authCalls: setting('auth.calls', wholeNumber(64, 1, 10_000), 'Most questions to it at once.'),
  authQueue: setting('auth.queue', wholeNumber(256, 0, 100_000), 'Most questions that wait for their turn; 503 above.'),
  authAccountFields: setting(
    'auth.account_fields',
    textList('scope', 'account'),
    'Members of the answer, or else claims of the token, that name the account. The first one counts; without one, the account is `default`.',
  ),
  jwksUrl: setting('auth.jwks_url', serviceUrl(), 'Public keys that tokens are checked with here, without asking.'),
  jwtIssuer: setting('auth.issuer', optionalText(), 'The issuer that such tokens must name.'),
  jwtAudience: setting('auth.audience', optionalText(), 'The audience that such tokens must name.'),
  jwtAlgorithms: setting(
    'auth.algorithms',
    algorithmList('RS256', 'ES256', 'EdDSA'),
    'The algorithms that count in such tokens.',
  ),
  jwtSkewMs: setting('auth.clock_skew', duration('30s', '0s', '60s'), 'How far clocks may differ in such tokens.'),

  adminName: setting('identity.admin_name', userName('admin'), 'Name of the first user.'),
  adminApiKey: setting(
    'identity.admin_api_key',
    apiKey(),
    'API key of the first user. Without it, Berth creates a key at the first start and prints it once.',
  ),
  adminPassword: setting(
    'identity.admin_password',
    secret(),
    "The first user's password; without it, no login by password.",
  ),
  identityCacheMs: setting(
    'identity.cache',
    duration('10s', '0s', '60s'),
    'How long the embedded service remembers a good credential.',
  ),
  keyRotationMs: setting(
    'identity.key_rotation',
    duration('30d', '0s'),
    'How often tokens get a new signing key; 0 leaves it to `berth signing-key rotate`.',
  ),
  usersPerAccount: setting(
    'limits.users_per_account',
    wholeNumber(1_000, 1),
    'The largest number of users in one account. Above it, POST /users is refused; `berth user add` still works.',
  ),
  keysPerUser: setting('limits.keys_per_user', wholeNumber(100, 1), 'Most API keys of one user.'),
  roles: setting('identity.roles', roleMap(defaultRoles, allRights), 'Role -> rights (pull, push, delete, operate).'),

  missingContent: setting(
    'manifests.missing_content',
    choice('reject', 'allow'),
    'What to do with a manifest whose content is not all here.',
  ),
  additionalMediaTypes: setting(
    'manifests.additional_media_types',
    textList(),
    'Manifest media types to accept beside the usual three.',
  ),

  headerBytes: setting('limits.header_bytes', byteCount('16KiB', '4KiB', '1MiB'), 'Largest header block of a request.'),
  manifestBytes: setting('limits.manifest_bytes', byteCount('4MiB', '1MiB'), 'Largest manifest.'),
  ...memorySettings,
  jsonDepth: setting('limits.json_depth', wholeNumber(32, 8, 1_000), 'Deepest nesting in a manifest.'),
  descriptors: setting('limits.descriptors', wholeNumber(10_000, 100), 'Most entries in one manifest.'),
  annotations: setting('limits.annotations', wholeNumber(1_000, 10), 'Most annotations of one manifest.'),
  annotationBytes: setting(
    'limits.annotation_bytes',
    byteCount('256KiB', '1KiB', '4MiB'),
    'Most bytes of annotations in a manifest that has a subject. The list of referrers repeats them.',
  ),
  referrersBytes: setting(
    'limits.referrers_bytes',
    byteCount('4MiB', '64KiB', '64MiB'),
    'Largest page of a list of referrers. Many clients read no more than 4 MiB and ask for no second page.',
  ),
  blobBytes: setting('limits.blob_bytes', byteCount('50GiB', '1MiB'), 'Largest blob.'),
  uploadsPerRepository: setting(
    'limits.uploads_per_repository',
    wholeNumber(1_000, 1),
    'The largest number of unfinished uploads in one repository. An upload in one request does not count.',
  ),
  uploadsPerPrincipal: setting(
    'limits.uploads_per_principal',
    wholeNumber(200, 1),
    'The largest number of unfinished uploads of one principal in one repository, so that one caller cannot block the others.',
  ),
  tagsPerPush: setting('limits.tags_per_push', wholeNumber(16, 10), 'Most tag parameters of one push.'),
  pageDefault: setting('limits.page_default', wholeNumber(100, 1), 'Length of a catalog page when none is asked for.'),
  pageMax: setting('limits.page_max', wholeNumber(1_000, 1), 'Longest page.'),
  bodyBytesPerSecond: setting(
    'limits.body_bytes_per_second',
    byteCount('1KiB'),
    'A sender slower than this, over the window, is cut.',
  ),
  bodyWindowMs: setting(
    'limits.body_window',
    duration('30s', '1s', '1h'),
    'The window over which a sender is watched; a reader that takes nothing for this long is cut.',
  ),

  garbageEveryMs: setting(
    'garbage.every',
    duration('1h', '0s'),
    'How often garbage is collected; 0 leaves it to `berth gc`.',
  ),
  leaseMs: setting('garbage.lease', duration('24h'), 'How long a blob is safe without a manifest that names it.'),
  quarantineMs: setting('garbage.quarantine', duration('24h'), 'How long the bytes of a collected blob are kept.'),
  uploadIdleMs: setting(
    'garbage.upload_idle',
    duration('24h', '1m'),
    'An unfinished upload that nobody continues for this long is dropped.',
  ),
  uploadMaxMs: setting(
    'garbage.upload_max_age',
    duration('7d', '1m'),
    'An unfinished upload older than this is dropped.',
  ),

  sweepEveryMs: setting(
    'garbage.sweep_every',
    duration('7d', '0s'),
    'How often the blob store is looked through for what no row names; 0 leaves it to `berth gc --sweep`.',
  ),

  logFormat: setting('log.format', choice('auto', 'json', 'text'), 'auto: text on a terminal, JSON elsewhere.'),
  logBuffer: setting(
    'log.buffer',
    byteCount('1MiB', '64KiB', '1GiB'),
    'How much log text may wait in memory while nobody reads standard output; lines beyond that are dropped and counted.',
  ),
  logLevel: setting('log.level', choice('info', 'debug', 'warn', 'error', 'silent'), 'What is worth a line.'),
} as const

type Table = typeof settingsTable

/** The settings in force. */
export type Config = { readonly [K in keyof Table]: Table[K] extends Setting<infer T> ? T : never }
