// The layout as data: which folder may import which, and which may use each package and engine of Bun. The rules are in
// house-rules.ts.

/** Folder -> the folders that its files may import. A folder may import itself; an adapter never another adapter. */
export const importTable = {
  main: ['cli'],
  cli: ['app', 'registry', 'identity', 'oci', 'lib'],
  app: ['http', 'adapters', 'registry', 'identity', 'ports', 'oci', 'lib'],
  http: ['registry', 'identity', 'ports', 'oci', 'lib'],
  registry: ['ports', 'oci', 'lib'],
  identity: ['ports', 'oci', 'lib'],
  adapters: ['ports', 'oci', 'lib'],
  ports: ['oci'],
  oci: [],
  lib: [],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** The folders of test/support. A kit may import the kits before it in this list, and nothing else of test/. */
export const kitOrder: readonly string[] = [
  'basics',
  'clocks',
  'house',
  'clients',
  'identity',
  'postgres',
  's3',
  'stores',
  'server',
  's3-faults',
  'api',
  'replicas',
  'moves',
]

/** The only file that reads package.json. */
export const versionFile = 'src/app/version.ts'

export type Layer = keyof typeof importTable

/** Where something from outside may be imported or used: folders end with a slash, the rest are files. */
type Places = readonly string[]

/** Third-party packages, each with its layer. A package that is not listed may not be imported. */
export const packageHomes: Readonly<Record<string, Places>> = {
  '@aws-sdk/credential-provider-http': ['src/adapters/blobs-s3/credentials.ts'],
  '@aws-sdk/credential-provider-web-identity': ['src/adapters/blobs-s3/credentials.ts'],
  '@smithy/credential-provider-imds': ['src/adapters/blobs-s3/credentials.ts'],
  commander: ['src/cli/'],
  jose: ['src/lib/jwt.ts'],
  'lru-cache': ['src/identity/'],
  typebox: ['src/http/openapi/'],
}

/** Dependencies that are run and not imported. */
export const runtimePackages: readonly string[] = ['bun']

/** Modules that the runtime brings along. One that is not here may not be imported. */
export const builtinHomes: Readonly<Record<string, Places>> = {
  // The type of the server; what makes one is `Bun.serve`, below.
  bun: ['src/http/server.ts', 'src/http/stalled-readers.ts'],
  'bun:sqlite': ['src/adapters/metadata-sql/sqlite-connection.ts', 'src/adapters/metadata-sql/sqlite-server-lock.ts'],
  // Ciphers. Bun has hashes, and only the asynchronous ciphers of browsers.
  'node:crypto': ['src/lib/text-sealer.ts'],
  // In lib: durable files, and the connections that the kernel reports.
  'node:fs': [
    'src/adapters/',
    'src/app/',
    'src/lib/open-files.ts',
    'src/lib/durable-files.ts',
    'src/lib/tcp-connections.ts',
  ],
  'node:fs/promises': ['src/adapters/', 'src/app/', 'src/lib/durable-files.ts'],
  // Bun keeps its limit of a request's headers there.
  'node:net': ['src/lib/ip-addresses.ts'],
  'node:http': ['src/http/server.ts'],
  'node:os': ['src/app/workers/shares.ts'],
  'node:path': ['src/adapters/', 'src/app/', 'src/lib/durable-files.ts'],
}

/** Engines and doors to the world that need no import. */
export const globalHomes: Readonly<Record<string, Places>> = {
  'Bun.serve': ['src/http/server.ts'],
  'Bun.SQL': ['src/adapters/metadata-sql/postgres-session.ts'],
  'Bun.S3Client': ['src/adapters/blobs-s3/'],
  'Bun.s3': ['src/adapters/blobs-s3/'],
  // A command reads the file that its argument names.
  'Bun.file': ['src/adapters/', 'src/cli/policy.ts'],
  'Bun.write': ['src/adapters/'],
  'Bun.spawn': ['src/app/workers/worker-process.ts'],
  'Bun.connect': ['src/lib/http-downloads.ts', 'src/adapters/webhooks-http/'],
  'Bun.dns': ['src/adapters/webhooks-http/'],
  'Bun.listen': [],
  'Bun.password': ['src/identity/passwords.ts'],
  'Bun.YAML': ['src/app/config.ts'],
  'Bun.env': [],
  'import.meta.env': [],
  'process.env': ['src/app/config.ts'],
}

/** In these layers, time and random numbers come through the Clock port, so that tests control both. */
export const clocklessLayers: readonly Layer[] = ['oci', 'ports', 'registry', 'identity']

export const linesMax = 300
export const functionLinesMax = 60
