import { addressList, optionalUrl, serviceUrl } from './address-kinds.ts'
import { eventSettings } from './event-settings.ts'
import { identitySettings } from './identity-settings.ts'
import { memorySettings } from './memory-settings.ts'
import {
  byteCount,
  choice,
  duration,
  flag,
  type Setting,
  setting,
  text,
  textList,
  wholeNumber,
  workerCount,
} from './setting-kinds.ts'
import { storeSettings } from './store-settings.ts'

/**
 * All settings: name in the file, kind (default and validation) and meaning. The name in the environment is derived from
 * the name in the file: `server.port` is BERTH_SERVER__PORT.
 */
export const settingsTable = {
  ...storeSettings,

  host: setting(
    'server.host',
    text('127.0.0.1'),
    'Address on which the server listens. `0.0.0.0` means all IPv4 addresses.',
  ),
  port: setting(
    'server.port',
    wholeNumber(5000, 0, 65_535),
    'Port on which the server listens. `0` picks a free port.',
  ),
  workers: setting(
    'server.workers',
    workerCount(64),
    'How many processes serve requests. With more than 1, a further process supervises them. `auto`: one for each core that the process may use, at most 8, and no more than the memory of the machine or container and the limits of the other settings allow; one with fewer than 3 cores. Only Linux distributes connections over several processes; on other systems `auto` is 1.',
  ),
  publicUrl: setting(
    'server.public_url',
    optionalUrl(),
    'Address that clients use, if a proxy stands in front of Berth.',
  ),
  docsUrl: setting(
    'server.docs_url',
    serviceUrl('https://docs.example.com/registry'),
    'Address of documentation for your users. The page at `/` links to it.',
  ),
  trustedProxies: setting(
    'server.trusted_proxies',
    addressList(),
    'Proxies whose headers X-Forwarded-For and X-Forwarded-Proto are trusted.',
  ),
  connectionsMax: setting(
    'server.connections_max',
    wholeNumber(0, 0),
    'The largest number of open descriptors above the number at start. Connections, files and connections to stores all count. Above it, new connections are refused. `0`: nine tenths of the descriptor limit (`ulimit -n`).',
  ),
  idleMs: setting(
    'server.idle',
    duration('30s', '8s', '255s'),
    'How long a connection may be open without a request before it is closed.',
  ),
  shutdownDelayMs: setting(
    'server.shutdown_delay',
    duration('0s', '0s', '1h'),
    'After SIGTERM, the server still accepts requests for this long, while `/readyz` answers 503. Then it closes the port.',
  ),
  drainMs: setting(
    'server.drain',
    duration('30s', '0s', '24h'),
    'How long requests may still run after the port has been closed.',
  ),

  rootMount: setting(
    'registry.root_mount',
    flag(true),
    'Serve the registry interface at `/v2/` too. Most clients need it.',
  ),
  autoEnable: setting(
    'accounts.auto_enable',
    flag(true),
    'Create and enable the registry of an account when the account is first used.',
  ),

  ...identitySettings,

  missingContent: setting(
    'manifests.missing_content',
    choice('reject', 'allow'),
    '`reject`: refuse a manifest whose blobs or manifests are not in the repository. `allow`: accept it.',
  ),
  additionalMediaTypes: setting(
    'manifests.additional_media_types',
    textList(),
    'Manifest media types to accept in addition to the three of the specification.',
  ),

  auditKeepMs: setting(
    'audit.keep',
    duration('90d', '0s'),
    'How long the entries of the audit log are kept. `0`: nothing is recorded, and older entries are removed.',
  ),
  pullsEveryMs: setting(
    'pulls.record_every',
    duration('1h', '0s', '30d'),
    'Of the pulls of a tag or manifest in one period of this length, one is recorded. `0`: pulls are not recorded.',
  ),
  pullsCountHead: setting(
    'pulls.count_head',
    flag(true),
    'Count a HEAD of a manifest by tag as a pull of the tag. Clients such as containerd and docker send only this request if they have the image.',
  ),

  headerBytes: setting(
    'limits.header_bytes',
    byteCount('16KiB', '4KiB', '1MiB'),
    'The largest size of all headers of a request.',
  ),
  manifestBytes: setting('limits.manifest_bytes', byteCount('4MiB', '1MiB'), 'The largest size of a manifest.'),
  ...memorySettings,
  jsonDepth: setting('limits.json_depth', wholeNumber(32, 8, 1_000), 'The deepest nesting of JSON in a manifest.'),
  descriptors: setting(
    'limits.descriptors',
    wholeNumber(10_000, 100),
    'The largest number of descriptors (layers, manifests and others) in one manifest.',
  ),
  annotations: setting(
    'limits.annotations',
    wholeNumber(1_000, 10),
    'The largest number of annotations in one manifest.',
  ),
  annotationBytes: setting(
    'limits.annotation_bytes',
    byteCount('256KiB', '1KiB', '4MiB'),
    'The largest size of all annotations in a manifest that has a subject. Lists of referrers repeat these annotations.',
  ),
  referrersBytes: setting(
    'limits.referrers_bytes',
    byteCount('4MiB', '64KiB', '64MiB'),
    'The largest size of one page of referrers. Many clients read no more than 4 MiB and do not ask for a second page.',
  ),
  blobBytes: setting('limits.blob_bytes', byteCount('50GiB', '1MiB'), 'The largest size of a blob.'),
  uploadsPerRepository: setting(
    'limits.uploads_per_repository',
    wholeNumber(1_000, 1),
    'The largest number of unfinished uploads in one repository. An upload in a single request does not count.',
  ),
  uploadsPerPrincipal: setting(
    'limits.uploads_per_principal',
    wholeNumber(200, 1),
    'The largest number of unfinished uploads of one user in one repository, so that one user cannot block the others.',
  ),
  tagsPerPush: setting(
    'limits.tags_per_push',
    wholeNumber(16, 10),
    'The largest number of `tag` parameters in one push of a manifest.',
  ),
  pageDefault: setting(
    'limits.page_default',
    wholeNumber(100, 1),
    'The number of repositories on a page of the catalog if the request does not set `n`.',
  ),
  pageMax: setting(
    'limits.page_max',
    wholeNumber(1_000, 1),
    'The largest number of entries on a page. A larger `n` is reduced to it.',
  ),
  bodyBytesPerSecond: setting(
    'limits.body_bytes_per_second',
    byteCount('1KiB'),
    'The lowest average speed, over `limits.body_window`, at which a client may send a body. A slower client is disconnected.',
  ),
  bodyWindowMs: setting(
    'limits.body_window',
    duration('30s', '1s', '1h'),
    'The period over which the speed of a sender is measured. A client that reads nothing of its answer for this long is disconnected too.',
  ),

  garbageEveryMs: setting(
    'garbage.every',
    duration('1h', '0s'),
    'How often garbage is collected. `0`: only `berth gc` collects it.',
  ),
  leaseMs: setting('garbage.lease', duration('24h'), 'How long a blob is kept while no manifest refers to it.'),
  quarantineMs: setting(
    'garbage.quarantine',
    duration('24h'),
    'How long the bytes of a collected blob are kept before they are removed.',
  ),
  uploadIdleMs: setting(
    'garbage.upload_idle',
    duration('24h', '1m'),
    'An unfinished upload to which no client has written for this long is removed.',
  ),
  uploadMaxMs: setting(
    'garbage.upload_max_age',
    duration('7d', '1m'),
    'An unfinished upload older than this is removed.',
  ),

  uploadDoneMs: setting(
    'garbage.finished_uploads',
    duration('1h', '5m', '24h'),
    'How long a finished upload is remembered. A client that repeats the request that finished the upload gets the same answer during this time.',
  ),
  untaggedMs: setting(
    'garbage.untagged',
    duration('0s', '0s'),
    'How long a manifest is kept to which no tag, no index and no subject leads, for example after `latest` moved. It is kept at least for `garbage.tag_history` if it had a tag. `0`: for ever.',
  ),
  undeleteMs: setting(
    'garbage.undelete',
    duration('7d', '0s'),
    'How long a deleted manifest can be undeleted. Its blobs keep their space during this time. `0`: not at all.',
  ),
  tagHistoryMs: setting(
    'garbage.tag_history',
    duration('30d', '0s'),
    'How long the moves of tags are kept. Within this period, a tag can be restored to what it pointed to.',
  ),
  sweepEveryMs: setting(
    'garbage.sweep_every',
    duration('7d', '0s'),
    'How often the blob store is searched for orphaned objects, which no row refers to. `0`: only `berth gc --sweep` does it.',
  ),

  ...eventSettings,
  retentionEveryMs: setting(
    'retention.every',
    duration('24h', '0s'),
    'How often the retention policies of the accounts are applied. `0`: only on command.',
  ),

  logFormat: setting('log.format', choice('auto', 'json', 'text'), '`auto`: text on a terminal, JSON elsewhere.'),
  logBuffer: setting(
    'log.buffer',
    byteCount('1MiB', '64KiB', '1GiB'),
    'The largest amount of log text in memory while standard output is blocked. Further lines are dropped and counted.',
  ),
  logLevel: setting(
    'log.level',
    choice('info', 'debug', 'warn', 'error', 'silent'),
    'The lowest level of messages that are logged.',
  ),
} as const

type Table = typeof settingsTable

/** The settings in force. */
export type Config = { readonly [K in keyof Table]: Table[K] extends Setting<infer T> ? T : never }
