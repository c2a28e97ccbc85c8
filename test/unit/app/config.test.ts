import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError, readConfig } from '../../../src/app/config.ts'
import { toGarbageAges } from '../../../src/app/registry-settings.ts'
import { settingsTable } from '../../../src/app/settings.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'

const newFolder = useTemporaryFolders('config')

function file(content: string): string {
  const path = join(newFolder(), 'berth.yaml')
  writeFileSync(path, content)
  return path
}

function faultsOf(content: string, environment: Readonly<Record<string, string>> = {}): readonly string[] {
  try {
    readConfig(file(content), environment)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

describe('the settings in force', () => {
  test('are the defaults where nothing is set', () => {
    const config = readConfig(undefined, {})
    expect(config).toMatchObject({ host: '127.0.0.1', port: 5000, rootMount: true, manifestBytes: 4_194_304 })
    expect(Object.keys(config).toSorted()).toEqual(Object.keys(settingsTable).toSorted())
    for (const [key, { kind }] of Object.entries(settingsTable)) {
      expect(config[key as keyof typeof config]).toEqual(kind.fallback as never)
    }
  })

  test('come from the file, and the environment has the last word', () => {
    const path = file('server:\n  port: 6000\n  host: 0.0.0.0\nlimits: { manifest_bytes: 8MiB }\n')
    const config = readConfig(path, { BERTH_SERVER__PORT: '7000', PORT: '1', HOME: '/x' })
    expect(config).toMatchObject({ port: 7000, host: '0.0.0.0', manifestBytes: 8_388_608 })
  })

  test('may be written with a dot, in sections, or not at all', () => {
    expect(readConfig(file('server.port: 6000'), {}).port).toBe(6000)
    expect(readConfig(file('data_dir: /var/lib/berth'), {}).dataDir).toBe('/var/lib/berth')
    for (const empty of ['', '# nothing\n', 'null', 'server:\n  port:\n', '{}']) {
      expect(readConfig(file(empty), {}).port).toBe(5000)
    }
  })

  test('cannot be changed by code that reads them', () => {
    expect(Object.isFrozen(readConfig(undefined, {}))).toBe(true)
  })

  test('may be read once from a file that has lists and maps', () => {
    const config = readConfig(
      file('manifests: { additional_media_types: [a/b, c/d] }\nidentity: { roles: { ops: [operate, pull] } }'),
      {},
    )
    expect([...config.additionalMediaTypes]).toEqual(['a/b', 'c/d'])
    expect([...config.roles]).toEqual([['ops', ['operate', 'pull']]])
  })
})

describe('invalid settings', () => {
  test('is told all at once, each fault with the name that was used', () => {
    const faults = faultsOf('server:\n  port: 70000\n  prot: 5\nlimits: { json_depth: deep }\nzzz: 1\n', {
      BERTH_SERVER__IDLE: 'soon',
      BERTH_SERVER__PROT: '5',
    })
    expect(faults.length).toBe(6)
    for (const words of [
      'server.prot (in the settings file) is not a setting',
      'zzz (in the settings file) is not a setting',
      'BERTH_SERVER__PROT (in the environment) is not a setting',
      'server.port: 70000 must be a whole number from 0 to 65535',
      'limits.json_depth: "deep" must be a whole number',
      'BERTH_SERVER__IDLE: "soon" must be a duration',
    ]) {
      expect(faults.some((fault) => fault.includes(words))).toBe(true)
    }
  })

  test('never shows a secret', () => {
    for (const faults of [
      faultsOf('identity: { admin_api_key: hush, admin_password: hush }'),
      faultsOf('identity: { admin_api_key: [hush], admin_password: { a: hush } }'),
      faultsOf('', { BERTH_IDENTITY__ADMIN_API_KEY: 'hush', BERTH_IDENTITY__ADMIN_PASSWORD: 'hush' }),
      faultsOf('identity:\n  admin_api_key: "hush\n'),
      faultsOf('identity: { admin_api_key: hush'),
    ]) {
      expect(faults.length).toBeGreaterThan(0)
      expect(faults.join()).not.toContain('hush')
    }
    const [fault, ...others] = faultsOf('', { BERTH_IDENTITY__ADMIN_API_KEY: 'hush hush, hush hush' })
    expect(others).toEqual([])
    expect(fault).toStartWith('BERTH_IDENTITY__ADMIN_API_KEY: the value (not shown) must be 20 to 1024')
  })

  test('is a memory of which one caller gets less than its largest request needs, with the name of the size', () => {
    const words = (name: string) =>
      `limits.memory must be at least 4 times ${name}, because one caller gets at most 1/4 of limits.memory`
    const small = 'limits: { memory: 32MiB, referrers_bytes: '
    expect(faultsOf(`${small}8MiB }`)).toEqual([])
    expect(faultsOf(`${small}9MiB }`)).toEqual([words('limits.referrers_bytes')])
    expect(faultsOf(`${small}9MiB, manifest_bytes: 9MiB }`)).toEqual(
      ['limits.manifest_bytes', 'limits.referrers_bytes'].map(words),
    )
  })

  test('a file that was named and is not there', () => {
    expect(() => readConfig(join(newFolder(), 'nowhere.yaml'), {})).toThrow(ConfigError)
  })

  test.each(['- a\n- b', 'just text', '5', 'server: [', 'a: b: c', '\0'])('a file that holds %j', (content) => {
    expect(faultsOf(content).length).toBeGreaterThan(0)
  })

  test.each([
    'server: 5',
    'server: [1]',
    'server: text',
    'data_dir: { a: 1 }',
    'server.port: [5000]',
    'server: { port: {} }',
  ])('a section where a value is meant, or the other way round: %p', (content) => {
    expect(faultsOf(content).length).toBeGreaterThan(0)
  })

  test('a name that is no own setting of the table', () => {
    expect(faultsOf('constructor: 1\n__proto__: { port: 1 }\ntoString: 2').length).toBeGreaterThan(0)
  })
})

describe('settings that are right each for itself', () => {
  const checkedHere = {
    BERTH_AUTH__URL: 'https://id.example.com',
    BERTH_AUTH__JWKS_URL: 'https://id.example.com/keys',
    BERTH_AUTH__ISSUER: 'https://id.example.com',
    BERTH_AUTH__AUDIENCE: 'registry',
  }

  test('and together are no fault', () => {
    expect(faultsOf('', checkedHere)).toEqual([])
    expect(faultsOf('', { BERTH_AUTH__URL: 'https://id.example.com' })).toEqual([])
  })

  test.each([
    ['BERTH_AUTH__URL', 'auth.url'],
    ['BERTH_AUTH__ISSUER', 'auth.issuer'],
    ['BERTH_AUTH__AUDIENCE', 'auth.audience'],
  ])('may be wrong together: keys that tokens are checked with, without %s', (variable, name) => {
    expect(faultsOf('', { ...checkedHere, [variable]: '' })).toEqual([`auth.jwks_url needs ${name}`])
  })
})

test('a fault of an address does not show the password in it', () => {
  for (const variable of ['BERTH_AUTH__URL', 'BERTH_AUTH__JWKS_URL', 'BERTH_SERVER__PUBLIC_URL']) {
    const faults = faultsOf('', { [variable]: 'https://user:canary-word@id.example.com' })
    expect([faults.length, faults.join().includes('canary')]).toEqual([1, false])
  }
})

describe('the environment', () => {
  test('of others is not ours to judge', () => {
    expect(readConfig(undefined, { BERTHA: '1', berth_server__port: '1', XBERTH_A: '1' }).port).toBe(5000)
  })

  test('is written in capitals, with two underscores for the dot', () => {
    expect(settingsTable.bodyBytesPerSecond.variable).toBe('BERTH_LIMITS__BODY_BYTES_PER_SECOND')
    expect(settingsTable.dataDir.variable).toBe('BERTH_DATA_DIR')
    const variables = Object.values(settingsTable).map(({ variable }) => variable)
    expect(new Set(variables).size).toBe(variables.length)
  })

  test('variables that say where a move goes stop nothing else', () => {
    expect(faultsOf('', { BERTH_TO_METADATA__URL: 'postgres://new/berth', BERTH_TO_NONSENSE: '1' })).toEqual([])
  })

  test('the variables that Kubernetes adds for a service named berth are no faults', () => {
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
    expect(faultsOf('', ofKubernetes)).toEqual([])
    expect(faultsOf('', { BERTH_PORTS: '1' }).length).toBe(1)
  })
})

describe('the usual variables of S3 credentials', () => {
  const bucket = { BERTH_STORAGE__S3__BUCKET: 'b' }
  const usual = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 's', AWS_SESSION_TOKEN: 't', AWS_ROLE_ARN: 'r' }

  test('count where none of our own is given', () => {
    const config = readConfig(undefined, { ...bucket, ...usual, AWS_WEB_IDENTITY_TOKEN_FILE: '/token' })

    expect([config.s3AccessKey, config.s3SecretKey, config.s3SessionToken]).toEqual(['a', 's', 't'])
  })

  test('are ignored where one of our own is: a foreign token would go to our store', () => {
    const own = { BERTH_STORAGE__S3__ACCESS_KEY_ID: 'own', BERTH_STORAGE__S3__SECRET_ACCESS_KEY: 'secret' }
    const config = readConfig(undefined, { ...bucket, ...own, ...usual, AWS_REGION: 'eu-west-1' })

    expect([config.s3AccessKey, config.s3SecretKey]).toEqual(['own', 'secret'])
    expect([config.s3SessionToken, config.s3RoleArn, config.s3Region]).toEqual([undefined, undefined, 'eu-west-1'])
  })

  test('are those of ECS and of EKS Pod Identity, too', () => {
    const container = {
      AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/v2/credentials/task',
      AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://169.254.170.23/v1/credentials',
      AWS_CONTAINER_AUTHORIZATION_TOKEN: 'Basic word',
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: '/token',
    }
    const { s3CredentialsPath, s3CredentialsUri, s3CredentialsToken, s3CredentialsTokenFile } = readConfig(undefined, {
      ...bucket,
      ...container,
    })

    expect([s3CredentialsPath, s3CredentialsUri, s3CredentialsToken, s3CredentialsTokenFile]).toEqual(
      Object.values(container),
    )
    const own = readConfig(undefined, { ...bucket, ...container, BERTH_STORAGE__S3__CREDENTIALS_URI: 'https://a/' })
    expect([own.s3CredentialsPath, own.s3CredentialsToken]).toEqual([undefined, undefined])
  })

  const foreign = { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://example.com/role' }

  test('stop the start where they send us to another host without TLS', () => {
    expect(faultsOf('', { ...bucket, ...foreign })).toEqual([
      expect.stringMatching(
        /^storage\.s3\.credentials_uri: "http:\/\/example\.com\/role" must be an https address, or /,
      ),
    ])
    expect(faultsOf('', { ...bucket, AWS_CONTAINER_CREDENTIALS_FULL_URI: 'gopher://127.0.0.1/x' }).length).toBe(1)
  })

  test('are nothing to us where the blobs are files', () => {
    const { s3CredentialsUri, s3AccessKey } = readConfig(undefined, { ...usual, ...foreign })

    expect([s3CredentialsUri, s3AccessKey]).toEqual([undefined, undefined])
  })
})

test('garbage.finished_uploads decides how long finished uploads are remembered', () => {
  const ages = (environment: Readonly<Record<string, string>>) => toGarbageAges(readConfig(undefined, environment))
  expect(ages({}).uploadDoneMs).toBe(3_600_000)
  expect(ages({ BERTH_GARBAGE__FINISHED_UPLOADS: '10m' }).uploadDoneMs).toBe(600_000)
})
