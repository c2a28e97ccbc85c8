import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ConfigError, readConfig, readMoveConfigs } from '../../../src/app/config.ts'
import { toGarbageAges } from '../../../src/app/registry-settings.ts'
import { settingsTable } from '../../../src/app/settings.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'

const newFolder = useTemporaryFolders('config')
type Environment = Readonly<Record<string, string>>

function file(content: string): string {
  const path = join(newFolder(), 'berth.yaml')
  writeFileSync(path, content)
  return path
}

const inEnvironment = (environment: Environment) => readConfig(undefined, environment)

function faultsOf(content: string, environment: Environment = {}): readonly string[] {
  try {
    readConfig(file(content), environment)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

describe('the settings in force', () => {
  test('are the defaults where nothing is set, and cannot be changed', () => {
    const config = inEnvironment({})
    expect(config).toMatchObject({ host: '127.0.0.1', port: 5000, rootMount: true, manifestBytes: 4_194_304 })
    const defaults = Object.entries(settingsTable).map(([key, { kind }]) => [key, kind.fallback])
    expect(config as unknown).toEqual(Object.fromEntries(defaults))
    expect(Object.isFrozen(config)).toBe(true)
  })

  test('come from a file in the folder of the caller, and otherwise from one in the working folder', () => {
    const path = file('server: { port: 6000 }')
    const folders = { BERTH_CALLER_FOLDER: dirname(path) }
    expect(readConfig(undefined, folders).port).toBe(6000)
    expect(readConfig(basename(path), folders).port).toBe(6000)
    expect(readConfig(path, { BERTH_CALLER_FOLDER: newFolder() }).port).toBe(6000)
    expect(readConfig(undefined, { BERTH_CALLER_FOLDER: newFolder() }).port).toBe(5000)
    expect(readMoveConfigs(undefined, 'berth.yaml', folders).target.port).toBe(6000)
  })

  test('come from the file, and the environment overrides it', () => {
    const path = file('server:\n  port: 6000\n  host: 0.0.0.0\nlimits: { manifest_bytes: 8MiB }\n')
    const config = readConfig(path, { BERTH_SERVER__PORT: '7000', PORT: '1', HOME: '/x' })
    expect(config).toMatchObject({ port: 7000, host: '0.0.0.0', manifestBytes: 8_388_608 })
  })

  test.each([
    ['server.port: 6000', { port: 6000 }],
    ['data_dir: /var/lib/berth', { dataDir: '/var/lib/berth' }],
    ...['', '# nothing\n', 'null', 'server:\n  port:\n', '{}'].map((empty) => [empty, { port: 5000 }] as const),
    ['manifests: { additional_media_types: [a/b, c/d] }', { additionalMediaTypes: ['a/b', 'c/d'] }],
    ['identity: { roles: { ops: [operate, pull] } }', { roles: new Map([['ops', ['operate', 'pull']]]) }],
  ] as const)('may be written as %j', (content, expected) => {
    expect(readConfig(file(content), {})).toMatchObject(expected)
  })
})

describe('invalid settings', () => {
  test('are reported together, each with the name that was used', () => {
    const faults = faultsOf('server:\n  port: 70000\n  prot: 5\nlimits: { json_depth: deep }\nzzz: 1\n', {
      BERTH_SERVER__IDLE: 'soon',
      BERTH_SERVER__PROT: '5',
    })
    const beginnings = [
      'server.prot (in the settings file) is not a setting',
      'zzz (in the settings file) is not a setting',
      'BERTH_SERVER__PROT (in the environment) is not a setting',
      'server.port: 70000 must be a whole number from 0 to 65535',
      'limits.json_depth: "deep" must be a whole number',
      'BERTH_SERVER__IDLE: "soon" must be a duration',
    ]
    expect(faults.length).toBe(6)
    for (const beginning of beginnings) expect(faults.some((fault) => fault.startsWith(beginning))).toBe(true)
  })

  test('never show a secret, nor the password in an address', () => {
    for (const [content, environment] of [
      ['identity: { admin_api_key: hush, admin_password: hush }'],
      ['identity: { admin_api_key: [hush], admin_password: { a: hush } }'],
      ['', { BERTH_IDENTITY__ADMIN_API_KEY: 'hush', BERTH_IDENTITY__ADMIN_PASSWORD: 'hush' }],
      ['identity:\n  admin_api_key: "hush\n'],
      ['identity: { admin_api_key: hush'],
      ...['AUTH__URL', 'AUTH__JWKS_URL', 'SERVER__PUBLIC_URL'].map(
        (name) => ['', { [`BERTH_${name}`]: 'https://user:hush@id.example.com' }] as const,
      ),
    ] as const) {
      const faults = faultsOf(content, environment)
      expect([faults.length > 0, faults.join().includes('hush')]).toEqual([true, false])
    }
    expect(faultsOf('', { BERTH_IDENTITY__ADMIN_API_KEY: 'hush hush, hush hush' })).toEqual([
      expect.stringMatching(/^BERTH_IDENTITY__ADMIN_API_KEY: the value \(not shown\) must be 20 to 1024/),
    ])
  })

  test('are a memory that is too small for the largest request of one caller', () => {
    const fault = (name: string) =>
      `limits.memory must be at least 4 times ${name}, because one caller gets at most 1/4 of limits.memory`
    const small = 'limits: { memory: 32MiB, referrers_bytes: '
    expect(faultsOf(`${small}8MiB }`)).toEqual([])
    expect(faultsOf(`${small}9MiB }`)).toEqual([fault('limits.referrers_bytes')])
    expect(faultsOf(`${small}9MiB, manifest_bytes: 9MiB }`)).toEqual(
      ['limits.manifest_bytes', 'limits.referrers_bytes'].map(fault),
    )
  })

  test('are keys with which tokens are checked, without service, issuer or audience', () => {
    const checkedHere = {
      BERTH_AUTH__URL: 'https://id.example.com',
      BERTH_AUTH__JWKS_URL: 'https://id.example.com/keys',
      BERTH_AUTH__ISSUER: 'https://id.example.com',
      BERTH_AUTH__AUDIENCE: 'registry',
    }
    expect(faultsOf('', checkedHere)).toEqual([])
    expect(faultsOf('', { BERTH_AUTH__URL: 'https://id.example.com' })).toEqual([])
    for (const name of ['url', 'issuer', 'audience']) {
      const faults = faultsOf('', { ...checkedHere, [`BERTH_AUTH__${name.toUpperCase()}`]: '' })
      expect(faults).toEqual([`auth.jwks_url needs auth.${name}`])
    }
  })

  test.each([
    ...['- a\n- b', 'just text', '5', 'server: [', 'a: b: c', '\0'],
    // A section in the place of a value, or the other way round.
    ...[
      'server: 5',
      'server: [1]',
      'server: text',
      'data_dir: { a: 1 }',
      'server.port: [5000]',
      'server: { port: {} }',
    ],
    // Names of the prototype of an object.
    ...['constructor: 1', '__proto__: { port: 1 }', 'toString: 2'],
  ])('are a file that contains %j', (content) => {
    expect(faultsOf(content).length).toBeGreaterThan(0)
  })
})

describe('the variables of the environment', () => {
  test('are different for each setting, in capitals, with two underscores for the dot', () => {
    expect(settingsTable.bodyBytesPerSecond.variable).toBe('BERTH_LIMITS__BODY_BYTES_PER_SECOND')
    expect(settingsTable.dataDir.variable).toBe('BERTH_DATA_DIR')
    const variables = Object.values(settingsTable).map(({ variable }) => variable)
    expect(new Set(variables).size).toBe(variables.length)
  })

  const ofKubernetes = {
    BERTH_SERVICE_HOST: '10.0.0.1',
    BERTH_SERVICE_PORT: '5000',
    BERTH_SERVICE_PORT_HTTP: '5000',
    BERTH_PORT: 'tcp://10.0.0.1:5000',
    BERTH_PORT_5000_TCP: 'tcp://10.0.0.1:5000',
    BERTH_PORT_5000_TCP_PROTO: 'tcp',
    BERTH_PORT_5000_TCP_PORT: '5000',
    BERTH_PORT_5000_TCP_ADDR: '10.0.0.1',
  }
  test.each([
    ['of other programs', { BERTHA: '1', berth_server__port: '1', XBERTH_A: '1' }],
    ['of the target of a move', { BERTH_TO_METADATA__URL: 'postgres://new/berth', BERTH_TO_NONSENSE: '1' }],
    ['that Kubernetes adds for a service with the name berth', ofKubernetes],
  ] as readonly (readonly [string, Environment])[])('%s are ignored', (_, environment) => {
    expect(inEnvironment(environment)).toEqual(inEnvironment({}))
    expect(faultsOf('', { BERTH_PORTS: '1' }).length).toBe(1)
  })
})

describe('the usual variables of S3 credentials', () => {
  const bucket = { BERTH_STORAGE__S3__BUCKET: 'b' }
  const usual = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 's', AWS_SESSION_TOKEN: 't', AWS_ROLE_ARN: 'r' }
  const foreign = { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://example.com/role' }
  const container = {
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/v2/credentials/task',
    AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://169.254.170.23/v1/credentials',
    AWS_CONTAINER_AUTHORIZATION_TOKEN: 'Basic word',
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: '/token',
  }

  test.each([
    [
      'count where none of our own is given',
      { ...bucket, ...usual, AWS_WEB_IDENTITY_TOKEN_FILE: '/token' },
      { s3AccessKey: 'a', s3SecretKey: 's', s3SessionToken: 't', s3RoleArn: 'r' },
    ],
    [
      'are ignored where one of our own is: the session token of another service would go to our store',
      {
        ...{ ...bucket, ...usual, AWS_REGION: 'eu-west-1' },
        ...{ BERTH_STORAGE__S3__ACCESS_KEY_ID: 'own', BERTH_STORAGE__S3__SECRET_ACCESS_KEY: 'secret' },
      },
      {
        ...{ s3AccessKey: 'own', s3SecretKey: 'secret', s3Region: 'eu-west-1' },
        ...{ s3SessionToken: undefined, s3RoleArn: undefined },
      },
    ],
    [
      'are those of ECS and of EKS Pod Identity, too',
      { ...bucket, ...container },
      {
        s3CredentialsPath: '/v2/credentials/task',
        s3CredentialsUri: 'http://169.254.170.23/v1/credentials',
        s3CredentialsToken: 'Basic word',
        s3CredentialsTokenFile: '/token',
      },
    ],
    [
      'of ECS and EKS are ignored where our own is given',
      { ...bucket, ...container, BERTH_STORAGE__S3__CREDENTIALS_URI: 'https://a/' },
      { s3CredentialsUri: 'https://a/', s3CredentialsPath: undefined, s3CredentialsToken: undefined },
    ],
    [
      'are ignored where the blobs are files',
      { ...usual, ...foreign },
      { s3CredentialsUri: undefined, s3AccessKey: undefined },
    ],
  ] as readonly (readonly [string, Environment, object])[])('%s', (_, environment, expected) => {
    expect(inEnvironment(environment)).toMatchObject(expected)
  })

  test('stop the start where they would send the token to another host without TLS', () => {
    const fault = /^storage\.s3\.credentials_uri: "http:\/\/example\.com\/role" must be an https address, or /
    expect(faultsOf('', { ...bucket, ...foreign })).toEqual([expect.stringMatching(fault)])
  })
})

test('garbage.finished_uploads decides how long finished uploads are remembered', () => {
  const ages = (environment: Environment) => toGarbageAges(inEnvironment(environment))
  expect(ages({}).uploadDoneMs).toBe(3_600_000)
  expect(ages({ BERTH_GARBAGE__FINISHED_UPLOADS: '10m' }).uploadDoneMs).toBe(600_000)
})
