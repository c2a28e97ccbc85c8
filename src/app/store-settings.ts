import { addressList, credentialsPath, credentialsUrl, postgresUrl, serviceUrl } from './address-kinds.ts'
import {
  byteCount,
  choice,
  diskReserve,
  duration,
  flag,
  foreignSecret,
  keyPrefix,
  optionalText,
  setting,
  text,
  textList,
  wholeNumber,
} from './setting-kinds.ts'

/** Settings of the metadata store and the blob store. A part of the table in settings.ts. */
export const storeSettings = {
  dataDir: setting('data_dir', text('./data'), 'Folder for the SQLite database, the blobs and the signing keys.'),

  databaseUrl: setting(
    'metadata.url',
    postgresUrl(),
    'Address of a PostgreSQL database (version 15 or newer) for the metadata. If it is not set, Berth uses SQLite in `data_dir`.',
  ),
  databaseConnections: setting(
    'metadata.connections',
    wholeNumber(10, 2, 1_000),
    'The largest number of connections to PostgreSQL from one server.',
  ),
  databaseQueue: setting(
    'metadata.queue',
    wholeNumber(1_000, 0, 100_000),
    'How many transactions may wait for a connection; the same number of single queries may wait too. Further requests get 503.',
  ),
  databaseStatementMs: setting(
    'metadata.statement_timeout',
    duration('10s', '100ms', '10m'),
    'The longest time that PostgreSQL may take for one statement.',
  ),
  databaseLockMs: setting(
    'metadata.lock_timeout',
    duration('5s', '100ms', '10m'),
    'The longest time that a statement may wait for a lock.',
  ),
  migrate: setting(
    'metadata.migrate',
    choice('auto', 'manual'),
    '`auto`: the server upgrades the database schema when it starts. `manual`: only `berth migrate` upgrades it.',
  ),

  minFreeBytes: setting(
    'storage.min_free',
    diskReserve(),
    'Free space that pushes must leave on each local disk that holds blobs or metadata. With less free space, uploads and new manifests get 503. Pulls, deletions, moving tags, garbage collection and the management of users and keys still work. `auto`: 1 GiB, or 5 % of the disk if that is smaller. `0`: no reserve.',
  ),

  inlineBytes: setting(
    'storage.inline_bytes',
    byteCount('16KiB', '0', '64KiB'),
    'The largest size of a blob that is stored in its row in the metadata store. A larger blob is a file or an S3 object. Stored blobs stay where they are. `0`: no blob is stored in its row.',
  ),
  bucket: setting(
    'storage.s3.bucket',
    optionalText(),
    'Bucket of an S3-compatible store for the blobs. If it is not set, Berth stores blobs as files in `data_dir`.',
  ),
  s3Endpoint: setting(
    'storage.s3.endpoint',
    serviceUrl('https://s3.example.com'),
    'Address of the S3 store. The default is `https://s3.<region>.amazonaws.com`.',
  ),
  s3PublicEndpoint: setting(
    'storage.s3.public_endpoint',
    serviceUrl('https://downloads.example.com'),
    'Address at which clients reach the S3 store. It is used in redirects. The default is `storage.s3.endpoint`.',
  ),
  s3Region: setting('storage.s3.region', text('us-east-1'), 'Region for which requests are signed.', 'AWS_REGION'),
  s3Prefix: setting('storage.s3.prefix', keyPrefix(), 'Prefix of every object name, such as `berth/`.'),
  s3PathStyle: setting(
    'storage.s3.path_style',
    flag(true),
    '`true`: the bucket name is in the path of the address. `false`: it is in the host name.',
  ),
  s3AccessKey: setting('storage.s3.access_key_id', optionalText(), 'Id of a fixed access key.', 'AWS_ACCESS_KEY_ID'),
  s3SecretKey: setting(
    'storage.s3.secret_access_key',
    foreignSecret(),
    'Secret of the fixed access key.',
    'AWS_SECRET_ACCESS_KEY',
  ),
  s3SessionToken: setting(
    'storage.s3.session_token',
    foreignSecret(),
    'Session token of the fixed access key, if it has one.',
    'AWS_SESSION_TOKEN',
  ),
  s3RoleArn: setting(
    'storage.s3.role_arn',
    optionalText(),
    'ARN of the role that Berth assumes with a web identity token.',
    'AWS_ROLE_ARN',
  ),
  s3TokenFile: setting(
    'storage.s3.token_file',
    optionalText(),
    'File that contains the web identity token.',
    'AWS_WEB_IDENTITY_TOKEN_FILE',
  ),
  s3StsEndpoint: setting(
    'storage.s3.sts_endpoint',
    serviceUrl('https://sts.example.com'),
    'Address of the Security Token Service (STS) that issues credentials for the role. The default is `https://sts.<region>.amazonaws.com`.',
  ),
  s3CredentialsUri: setting(
    'storage.s3.credentials_uri',
    credentialsUrl(),
    'Address from which a container gets credentials. If neither an access key, a role nor such an address is set, Berth asks the metadata service of the instance (EC2).',
    'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  ),
  s3CredentialsPath: setting(
    'storage.s3.credentials_path',
    credentialsPath(),
    'Path from which a container on ECS gets credentials, at http://169.254.170.2. It takes precedence over `storage.s3.credentials_uri`.',
    'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  ),
  s3CredentialsToken: setting(
    'storage.s3.credentials_token',
    foreignSecret(),
    'Value of the `Authorization` header in requests to the address for credentials.',
    'AWS_CONTAINER_AUTHORIZATION_TOKEN',
  ),
  s3CredentialsTokenFile: setting(
    'storage.s3.credentials_token_file',
    optionalText(),
    'File that contains this value. Berth reads it for each request. It takes precedence over `storage.s3.credentials_token`.',
    'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
  ),
  s3Checksum: setting(
    'storage.s3.checksum',
    choice('sha256', 'crc32', 'none'),
    'How the store verifies uploaded bytes: `sha256` (a signed SHA-256 of each part), `crc32`, or `none` (only TLS protects them).',
  ),
  s3Encryption: setting(
    'storage.s3.encryption',
    choice('none', 'AES256', 'aws:kms'),
    'Server-side encryption that Berth requests for each object. `none`: the default of the bucket applies.',
  ),
  s3KmsKey: setting(
    'storage.s3.kms_key_id',
    optionalText(),
    'Key for the encryption `aws:kms`. The default is the key that AWS manages for the account.',
  ),
  s3TimeoutMs: setting(
    'storage.s3.timeout',
    duration('30s', '100ms', '10m'),
    'The longest time that the store may take to answer, or to send the next bytes. Uploads of parts get more time according to their size.',
  ),
  s3Tries: setting(
    'storage.s3.tries',
    wholeNumber(4, 1, 20),
    'How often Berth tries a request that is safe to repeat, the first attempt included.',
  ),
  s3Requests: setting(
    'storage.s3.requests',
    wholeNumber(128, 4, 200),
    'The largest number of simultaneous requests to the store. Downloads use at most three quarters of them. While requests wait, Berth closes downloads whose clients read too slowly.',
  ),
  s3Queue: setting(
    'storage.s3.queue',
    wholeNumber(1_000, 0, 100_000),
    'How many requests to the store may wait for a free place. Further requests get 503.',
  ),
  s3Buffers: setting(
    'storage.s3.buffers',
    wholeNumber(32, 2, 10_000),
    'The largest number of upload parts in memory. A part has 8 MiB, or 16 MiB after the first 1,000 parts of a blob, and takes about twice that while it is sent. Further parts wait for a moment and are then written to temporary files in `data_dir`.',
  ),

  redirect: setting(
    'storage.redirect',
    flag(false),
    'Redirect blob downloads to the S3 store with a presigned address. Otherwise the bytes pass through Berth.',
  ),
  redirectLifetimeMs: setting(
    'storage.redirect_lifetime',
    duration('10m', '10s', '12h'),
    'How long a presigned address is valid.',
  ),
  redirectExceptNetworks: setting(
    'storage.redirect_except_networks',
    addressList(),
    'Clients in these networks are not redirected.',
  ),
  redirectExceptAgents: setting(
    'storage.redirect_except_agents',
    textList(),
    'Clients whose User-Agent contains one of these strings are not redirected.',
  ),
} as const
