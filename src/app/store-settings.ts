import {
  addressList,
  choice,
  credentialsPath,
  credentialsUrl,
  diskReserve,
  duration,
  flag,
  foreignSecret,
  keyPrefix,
  optionalText,
  postgresUrl,
  serviceUrl,
  setting,
  text,
  textList,
  wholeNumber,
} from './setting-kinds.ts'

/** Where the metadata and the bytes are. A part of the table in settings.ts. */
export const storeSettings = {
  dataDir: setting('data_dir', text('./data'), 'Folder of the embedded metadata, the blobs and the signing keys.'),

  databaseUrl: setting(
    'metadata.url',
    postgresUrl(),
    'PostgreSQL, 15 or newer, for the metadata; without it, SQLite in `data_dir`.',
  ),
  databaseConnections: setting(
    'metadata.connections',
    wholeNumber(10, 2, 1_000),
    'Most connections to PostgreSQL of one server.',
  ),
  databaseQueue: setting(
    'metadata.queue',
    wholeNumber(1_000, 0, 100_000),
    'Most transactions that wait for one of them, and most look-ups; 503 above.',
  ),
  databaseStatementMs: setting(
    'metadata.statement_timeout',
    duration('10s', '100ms', '10m'),
    'How long PostgreSQL may take for one statement.',
  ),
  databaseLockMs: setting(
    'metadata.lock_timeout',
    duration('5s', '100ms', '10m'),
    'How long a statement may wait for the lock of another.',
  ),
  migrate: setting(
    'metadata.migrate',
    choice('auto', 'manual'),
    'Whether the schema is brought up to date at the start, or by `berth migrate` alone.',
  ),

  minFreeBytes: setting(
    'storage.min_free',
    diskReserve(),
    'Free space that pushes must leave on each local disk that holds blobs or metadata. With less, uploads and new manifests get 503; pulls, deletions, the moving of tags, garbage collection and the management of users and keys still work. `auto`: 1 GiB, or 5 % of the disk if that is smaller; 0: no reserve.',
  ),

  bucket: setting(
    'storage.s3.bucket',
    optionalText(),
    'Bucket of an S3-compatible store for the blobs; without it, files in `data_dir`.',
  ),
  s3Endpoint: setting(
    'storage.s3.endpoint',
    serviceUrl(),
    'Where that store answers; by default `https://s3.<region>.amazonaws.com`.',
  ),
  s3PublicEndpoint: setting(
    'storage.s3.public_endpoint',
    serviceUrl(),
    'Where clients reach it, for redirects; by default the same.',
  ),
  s3Region: setting('storage.s3.region', text('us-east-1'), 'Region that requests are signed for.', 'AWS_REGION'),
  s3Prefix: setting('storage.s3.prefix', keyPrefix(), 'What the name of every object begins with, such as `berth/`.'),
  s3PathStyle: setting(
    'storage.s3.path_style',
    flag(true),
    'The bucket in the path of addresses; false: in their host name.',
  ),
  s3AccessKey: setting('storage.s3.access_key_id', optionalText(), 'Id of a fixed access key.', 'AWS_ACCESS_KEY_ID'),
  s3SecretKey: setting('storage.s3.secret_access_key', foreignSecret(), 'Its secret.', 'AWS_SECRET_ACCESS_KEY'),
  s3SessionToken: setting(
    'storage.s3.session_token',
    foreignSecret(),
    'Its session token, if any.',
    'AWS_SESSION_TOKEN',
  ),
  s3RoleArn: setting('storage.s3.role_arn', optionalText(), 'Role to take by a web identity token.', 'AWS_ROLE_ARN'),
  s3TokenFile: setting('storage.s3.token_file', optionalText(), 'File of that token.', 'AWS_WEB_IDENTITY_TOKEN_FILE'),
  s3StsEndpoint: setting(
    'storage.s3.sts_endpoint',
    serviceUrl(),
    'Service that gives credentials for it; by default `https://sts.<region>.amazonaws.com`.',
  ),
  s3CredentialsUri: setting(
    'storage.s3.credentials_uri',
    credentialsUrl(),
    'Address that gives credentials inside a container. With no access key, role or such address, the metadata of the instance is asked.',
    'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  ),
  s3CredentialsPath: setting(
    'storage.s3.credentials_path',
    credentialsPath(),
    'The same as a path at the agent of ECS, http://169.254.170.2; goes before it.',
    'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  ),
  s3CredentialsToken: setting(
    'storage.s3.credentials_token',
    foreignSecret(),
    'What is shown there as `Authorization`, if anything.',
    'AWS_CONTAINER_AUTHORIZATION_TOKEN',
  ),
  s3CredentialsTokenFile: setting(
    'storage.s3.credentials_token_file',
    optionalText(),
    'File of that text, read each time; goes before it.',
    'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
  ),
  s3Checksum: setting(
    'storage.s3.checksum',
    choice('sha256', 'crc32', 'none'),
    'How the store proves what it is sent: by the signed SHA-256 of each piece, by CRC-32, or by nothing but TLS.',
  ),
  s3Encryption: setting(
    'storage.s3.encryption',
    choice('none', 'AES256', 'aws:kms'),
    'Encryption at rest that is asked for with each object; none: as the bucket has it.',
  ),
  s3KmsKey: setting('storage.s3.kms_key_id', optionalText(), "Key for `aws:kms`; by default the account's own."),
  s3TimeoutMs: setting(
    'storage.s3.timeout',
    duration('30s', '100ms', '10m'),
    'How long the store may take to answer, or to send the next bytes; a piece that is sent gets more by its size.',
  ),
  s3Tries: setting('storage.s3.tries', wholeNumber(4, 1, 20), 'How often what can be repeated is tried.'),
  s3Requests: setting(
    'storage.s3.requests',
    wholeNumber(128, 4, 200),
    'Most requests to the store at once, downloads that run included: they get three quarters, and while others wait for them, readers that hardly read are cut.',
  ),
  s3Queue: setting('storage.s3.queue', wholeNumber(1_000, 0, 100_000), 'Most that wait for their turn; 503 above.'),
  s3Buffers: setting(
    'storage.s3.buffers',
    wholeNumber(32, 2, 10_000),
    'Most pieces of uploads in memory at once, 8 MiB each (16 MiB behind 8 GB of one blob), which take about twice their size on their way; others wait a while, and then go into files in `data_dir`.',
  ),

  redirect: setting(
    'storage.redirect',
    flag(false),
    'Send clients to the S3 store for blobs, by an address that is good for a while, instead of passing the bytes on.',
  ),
  redirectLifetimeMs: setting(
    'storage.redirect_lifetime',
    duration('10m', '10s', '12h'),
    'How long such an address is good.',
  ),
  redirectExceptNetworks: setting(
    'storage.redirect_except_networks',
    addressList(),
    'Clients at these addresses get the bytes from Berth all the same.',
  ),
  redirectExceptAgents: setting(
    'storage.redirect_except_agents',
    textList(),
    'So do those whose User-Agent has one of these texts in it.',
  ),
} as const
