// The services that give credentials: what each of them is sent, and what of their responses gets into our errors.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { chooseCredentials } from '../../../../src/adapters/blobs-s3/credentials.ts'
import type { CredentialSource } from '../../../../src/adapters/blobs-s3/request-sender.ts'
import { readConfig } from '../../../../src/app/config.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'
import { type Script, startScriptedServer } from '../../../support/server/scripted-server.ts'

const server = await startScriptedServer()
afterAll(() => server.stop())

const secret = 'the/secret+of+the+role'
const credentials = {
  accessKeyId: 'ASIAROLE',
  secretAccessKey: secret,
  sessionToken: 'the-session',
  expiresAt: Date.UTC(2030, 0, 2, 3, 4, 5),
}
const json = JSON.stringify({
  Code: 'Success',
  AccessKeyId: 'ASIAROLE',
  SecretAccessKey: secret,
  Token: 'the-session',
  Expiration: '2030-01-02T03:04:05Z',
})
const xml = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><SessionToken>the-session</SessionToken><SecretAccessKey>${secret}</SecretAccessKey>
<Expiration>2030-01-02T03:04:05Z</Expiration><AccessKeyId>ASIAROLE</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>`

const token = 'the.secret.token'
const tokenFile = join(useTemporaryFolders('credentials')(), 'token')
beforeEach(() => Bun.write(tokenFile, `${token}\n`))

// The provider of AWS takes the address of the metadata service from the environment.
const instanceEndpoint = 'AWS_EC2_METADATA_SERVICE_ENDPOINT'
afterAll(() => {
  delete process.env[instanceEndpoint]
})

type Environment = Readonly<Record<string, string>>

const fixedKey = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'word' }
const webIdentity = { AWS_ROLE_ARN: 'arn:aws:iam::1:role/berth', AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile }
const containerAt = (url: string) => ({
  AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/role?a=b`,
  AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
})
const container = containerAt(server.url)

/** The source that a server would choose in this environment. */
function sourceOf(environment: Environment, stsEndpoint = server.url): CredentialSource {
  const always = { BERTH_STORAGE__S3__BUCKET: 'b', BERTH_STORAGE__S3__STS_ENDPOINT: stsEndpoint }
  return chooseCredentials(readConfig(undefined, { ...always, ...environment }))
}

const instanceScript: Script = ({ method, target, headers }, answer) => {
  if (method === 'PUT' && target === '/latest/api/token') return answer.send(200, 'metadata-token')
  if (headers['x-aws-ec2-metadata-token'] !== 'metadata-token') return answer.send(401)
  if (target === '/latest/meta-data/iam/security-credentials/') return answer.send(200, 'the-role\n')
  if (target === '/latest/meta-data/iam/security-credentials/the-role') return answer.send(200, json)
  answer.send(404)
}
const containerScript: Script = ({ headers }, answer) =>
  headers['authorization'] === token ? answer.send(200, json) : answer.send(401)
const stsScript: Script = ({ method, body }, answer) => {
  const isRight = method === 'POST' && new URLSearchParams(body.toString()).get('WebIdentityToken') === token
  answer.send(
    isRight ? 200 : 400,
    isRight
      ? xml
      : `<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>${token}</Message></Error></ErrorResponse>`,
    { 'content-type': 'text/xml' },
  )
}

const services: readonly (readonly [string, Script, (url: string) => Environment])[] = [
  ['the metadata service of the instance', instanceScript, () => ({})],
  ['the credential endpoint of the container', containerScript, containerAt],
  ['the token service (STS)', stsScript, () => webIdentity],
]

const faults: readonly (readonly [string, Script])[] = [
  ['an error that repeats the request', (_, answer) => answer.send(403, `<Error/>${token} ${secret}`)],
  ['no credentials', (_, answer) => answer.send(200, '{}')],
  ['a page', (_, answer) => answer.send(200, `<html><p>${secret}`)],
  [
    'a redirect',
    ({ target }, answer) =>
      target === '/elsewhere' ? answer.send(200, json) : answer.send(302, '', { location: '/elsewhere' }),
  ],
]

describe.each(services)('%s', (name, script, environmentAt) => {
  async function askOwnServer(follow: Script) {
    const own = await startScriptedServer()
    own.follow(follow)
    process.env[instanceEndpoint] = own.url
    const result = await sourceOf(environmentAt(own.url), own.url)
      .get()
      .catch((error: unknown) => error)
    await own.stop()
    return { result, targets: own.requests.map(({ target }) => target) }
  }

  test('gives credentials and the time when they expire, and is asked again after one failure', async () => {
    let hasFailed = false
    const failOnce: Script = (request, answer, nth) => {
      if (hasFailed || (request.method === 'PUT' && script === instanceScript)) return script(request, answer, nth)
      hasFailed = true
      answer.send(500)
    }
    for (const follow of [script, failOnce]) expect((await askOwnServer(follow)).result).toEqual(credentials)
    expect(hasFailed).toBe(true)
  }, 20_000)

  test('gives an error without any secret, and cannot redirect the request', async () => {
    const check = async ([what, follow]: (typeof faults)[number]) => {
      const { result, targets } = await askOwnServer(follow)
      expect([what, String(result)]).toEqual([
        what,
        expect.stringContaining(`Error: fetching S3 credentials from ${name} failed: `),
      ])
      for (const word of [token, secret]) expect(Bun.inspect(result, { depth: 20 })).not.toContain(word)
      expect(targets).not.toContain('/elsewhere')
    }
    // All at once, because the provider for containers waits seconds before each repetition. There is one environment for all
    // requests to the metadata service.
    if (script === instanceScript) for (const fault of faults) await check(fault)
    else await Promise.all(faults.map(check))
  }, 40_000)
})

test('a web identity is sent with its role, and the request is not signed', async () => {
  server.follow(stsScript)
  await sourceOf(webIdentity).get()
  const [request] = server.requests
  expect([request?.target, request?.headers['authorization']]).toEqual(['/', undefined])
  expect(Object.fromEntries(new URLSearchParams(request?.body.toString()))).toEqual({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: 'arn:aws:iam::1:role/berth',
    RoleSessionName: 'berth',
    WebIdentityToken: token,
  })
})

test('the error of a rejected web identity has the code of the service', async () => {
  await Bun.write(tokenFile, 'another.token')
  server.follow(stsScript)
  const error = await errorOf(sourceOf(webIdentity).get())
  expect(String(error)).toContain('InvalidIdentityToken')
  expect(Bun.inspect(error, { depth: 20 })).not.toContain(token)
  expect(server.requests.length).toBe(1)
})

test('a container sends its token as it is, if it has one, and prefers its token file, which is read each time', async () => {
  server.follow((_, answer) => answer.send(200, json))
  const { AWS_CONTAINER_CREDENTIALS_FULL_URI } = container
  const withToken = { AWS_CONTAINER_CREDENTIALS_FULL_URI, AWS_CONTAINER_AUTHORIZATION_TOKEN: 'Basic word' }
  await sourceOf({ AWS_CONTAINER_CREDENTIALS_FULL_URI }).get()
  await sourceOf(withToken).get()
  await sourceOf({ ...container, ...withToken }).get()
  await Bun.write(tokenFile, 'another')
  await sourceOf({ ...container, ...withToken }).get()
  const sent = server.requests.map(({ method, target, headers }) => `${method} ${target} ${headers['authorization']}`)
  expect(sent).toEqual([undefined, 'Basic word', token, 'another'].map((word) => `GET /role?a=b ${word}`))
})

test.each([
  ['does not exist', undefined, 'the token file cannot be read'],
  ['is empty', ' \n', 'the token is not one line of text'],
  ['has two lines', 'a\nx-other: b', 'the token is not one line of text'],
])('if a token file %s, nothing is sent', async (_, text, words) => {
  const path = text === undefined ? `${tokenFile}.none` : tokenFile
  if (text !== undefined) await Bun.write(path, text)
  server.follow((_request, answer) => answer.send(200, json))
  for (const environment of [
    { ...container, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: path },
    { ...webIdentity, AWS_WEB_IDENTITY_TOKEN_FILE: path },
  ]) {
    expect(String(await errorOf(sourceOf(environment).get()))).toContain(words)
  }
  expect(server.requests).toEqual([])
})

describe('the choice', () => {
  test('is a fixed key first, then a web identity, then a container', async () => {
    server.follow(stsScript)
    expect(await sourceOf({ ...fixedKey, ...webIdentity, ...container, AWS_SESSION_TOKEN: 't' }).get()).toEqual({
      accessKeyId: 'AKIA',
      secretAccessKey: 'word',
      sessionToken: 't',
      expiresAt: undefined,
    })
    expect(server.requests).toEqual([])
    const source = sourceOf({ ...webIdentity, ...container })
    expect(source.current()).toBeUndefined()
    expect(await source.get()).toEqual(credentials)
    expect(server.requests.map(({ method }) => method)).toEqual(['POST'])
  })

  test('is no access key without its secret', () => {
    const settings = readConfig(undefined, { BERTH_STORAGE__S3__BUCKET: 'b' })
    for (const half of [{ s3AccessKey: 'id' }, { s3SecretKey: 'word' }]) {
      expect(() => chooseCredentials({ ...settings, ...half })).toThrow('an S3 access key needs its id and its secret')
    }
  })
})
