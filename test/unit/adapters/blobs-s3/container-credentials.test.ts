// The credentials of a container: where it asks, what it shows there, and where neither may ever go.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { askContainer, isCredentialsAddress } from '../../../../src/adapters/blobs-s3/credential-services.ts'
import { chooseCredentials, containerAddressOf } from '../../../../src/adapters/blobs-s3/s3-credentials.ts'
import { readConfig } from '../../../../src/app/config.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'
import { faultOf } from '../../../support/s3/s3-client.ts'
import { startScriptedServer } from '../../../support/server/scripted-server.ts'

const server = await startScriptedServer()
afterAll(() => server.stop())

const answer = {
  AccessKeyId: 'ASIATASK',
  SecretAccessKey: 'word',
  Token: 'session',
  Expiration: '2030-01-02T03:04:05Z',
}
const tokenFile = join(useTemporaryFolders('container')(), 'token')
const token = 'Basic secret-word'

beforeEach(() => server.follow((_, reply) => reply.send(200, JSON.stringify(answer))))

/** What a server would make of this environment. */
function sourceOf(environment: Readonly<Record<string, string>>) {
  return chooseCredentials(readConfig(undefined, { BERTH_STORAGE__S3__BUCKET: 'b', ...environment }))
}

function shown(): (string | undefined)[] {
  return server.requests.map(({ headers }) => headers['authorization'])
}

describe('the address', () => {
  test('is a path at the agent of ECS, before a whole one', () => {
    const s3CredentialsPath = '/v2/credentials/9c1b?id=1'
    const s3CredentialsUri = 'http://169.254.170.23/v1/credentials'

    expect(containerAddressOf({ s3CredentialsPath, s3CredentialsUri })).toBe(
      'http://169.254.170.2/v2/credentials/9c1b?id=1',
    )
    expect(containerAddressOf({ s3CredentialsPath: undefined, s3CredentialsUri })).toBe(s3CredentialsUri)
    expect(containerAddressOf({ s3CredentialsPath: undefined, s3CredentialsUri: undefined })).toBeUndefined()
  })

  test.each([
    'https://credentials.example.com/role',
    'http://localhost:1338/latest',
    'http://127.0.0.1/x',
    'http://127.8.9.10:80/x?y=z',
    'http://[::1]:9/',
    'http://169.254.170.2/v2/credentials/9c1b',
    'http://169.254.170.23/v1/credentials',
    'http://[fd00:ec2::23]/v1/credentials',
  ])('may be %s', (uri) => expect(isCredentialsAddress(uri)).toBe(true))

  const foreign = [
    'http://example.com/x',
    'http://169.254.169.254/x',
    'http://169.254.170.3/x',
    'http://169.254.170.231/x',
    'http://10.0.0.1/x',
    'http://[fd00:ec2::24]/x',
    'http://127.0.0.1.example.com/',
    'http://localhost.example.com/',
    'http://127.0.0.1@example.com/',
    'http://user:word@127.0.0.1/',
    'https://user@example.com/',
    'http://127.0.0.1/#x',
    'ftp://127.0.0.1/x',
    'file:///etc/passwd',
    '//127.0.0.1/x',
    'x',
    '',
  ]

  test.each(foreign)('may not be %j', async (uri) => {
    expect(isCredentialsAddress(uri)).toBe(false)
    expect((await faultOf(askContainer(uri, { token }))).message).toContain('must be https, the loopback')
  })
})

describe('a container', () => {
  test('asks with nothing to show, where it was given nothing', async () => {
    const { accessKeyId } = await sourceOf({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.url}/role?a=b` }).get()

    expect(accessKeyId).toBe('ASIATASK')
    expect(server.requests.map(({ method, target }) => [method, target])).toEqual([['GET', '/role?a=b']])
    expect(shown()).toEqual([undefined])
  })

  test('shows its token as it is', async () => {
    await sourceOf({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: server.url,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: token,
    }).get()

    expect(shown()).toEqual([token])
  })

  test('shows what the file says at the moment, before its token', async () => {
    await Bun.write(tokenFile, 'of.the.file\n')
    const environment = {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: server.url,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: token,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
    }
    await sourceOf(environment).get()
    await Bun.write(tokenFile, 'another')
    await sourceOf(environment).get()

    expect(shown()).toEqual(['of.the.file', 'another'])
  })

  test.each(['a\r\nx-other: b', 'a\nb', ' ', '\u00e4', 'a\0b'])(
    'shows no token like %j, and tells nobody',
    async (odd) => {
      const fault = await faultOf(askContainer(server.url, { token: odd }))

      expect(fault.message).toBe('asking for credentials: no-credentials the token is not one line of text')
      expect(server.requests).toEqual([])
    },
  )

  test('that is refused keeps its token to itself', async () => {
    server.follow((_, reply) => reply.send(403, `<Error><Code>AccessDenied</Code></Error>${token}`))
    const fault = await faultOf(askContainer(server.url, { token }))

    expect(shown()).toEqual([token])
    expect(Bun.inspect(fault, { depth: 20 })).not.toContain('secret-word')
  })

  test('is not asked where a key is given, nor where a role is', async () => {
    const container = { AWS_CONTAINER_CREDENTIALS_FULL_URI: server.url }
    const key = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'word' }

    expect((await sourceOf({ ...container, ...key }).get()).accessKeyId).toBe('AKIA')
    const role = { AWS_ROLE_ARN: 'r', AWS_WEB_IDENTITY_TOKEN_FILE: '/nowhere/token' }
    expect((await faultOf(sourceOf({ ...container, ...role }).get())).message).toContain(
      'the token file cannot be read',
    )
    expect(server.requests).toEqual([])
  })
})
