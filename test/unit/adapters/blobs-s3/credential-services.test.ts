// Who gives credentials, how each is asked, and which of their answers are none.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { askContainer, askForWebIdentity, askInstance } from '../../../../src/adapters/blobs-s3/credential-services.ts'
import type { S3Credentials } from '../../../../src/adapters/blobs-s3/credential-source.ts'
import { type CredentialSettings, chooseCredentials } from '../../../../src/adapters/blobs-s3/s3-credentials.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'
import { faultOf } from '../../../support/s3/s3-client.ts'
import { type Script, startScriptedServer } from '../../../support/server/scripted-server.ts'

const server = await startScriptedServer()
afterAll(() => server.stop())

const secret = 'the/secret+of+the+role'
const end = '2030-01-02T03:04:05Z'
const credentials: S3Credentials = {
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
  Expiration: end,
})
const xml = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><SessionToken>the-session</SessionToken><SecretAccessKey>${secret}</SecretAccessKey>
<Expiration>${end}</Expiration><AccessKeyId>ASIAROLE</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>`

const folder = useTemporaryFolders('credentials')()
const tokenFile = join(folder, 'token')
beforeEach(() => Bun.write(tokenFile, 'the.web.token\n'))

const instance: Script = ({ method, target, headers }, answer) => {
  if (method === 'PUT' && target === '/latest/api/token') {
    const seconds = Number(headers['x-aws-ec2-metadata-token-ttl-seconds'])
    return seconds > 0 ? answer.send(200, 'metadata-token') : answer.send(400)
  }
  if (headers['x-aws-ec2-metadata-token'] !== 'metadata-token') return answer.send(401)
  if (target === '/latest/meta-data/iam/security-credentials/') return answer.send(200, 'the-role\n')
  if (target === '/latest/meta-data/iam/security-credentials/the-role') return answer.send(200, json)
  answer.send(404)
}
const container: Script = ({ headers }, answer) =>
  headers['authorization'] === 'the.web.token' ? answer.send(200, json) : answer.send(401)
const sts: Script = ({ method, body }, answer) => {
  const form = new URLSearchParams(body.toString())
  const isRight = method === 'POST' && form.get('WebIdentityToken') === 'the.web.token'
  answer.send(
    isRight ? 200 : 400,
    isRight ? xml : '<ErrorResponse><Error><Code>InvalidIdentityToken</Code></Error></ErrorResponse>',
  )
}

const services: readonly (readonly [string, Script, () => Promise<S3Credentials>])[] = [
  ['the instance', instance, () => askInstance(server.url)],
  ['the container', container, () => askContainer(`${server.url}/role?a=b`, { tokenFile })],
  [
    'the web identity',
    sts,
    () => askForWebIdentity({ stsEndpoint: server.url, roleArn: 'arn:aws:iam::1:role/berth', tokenFile }),
  ],
]

describe.each(services)('%s', (_, script, ask) => {
  test('gives credentials and their end', async () => {
    server.follow(script)
    expect(await ask()).toEqual(credentials)
  })

  test('is asked again after a moment of weakness', async () => {
    let isWeak = true
    server.follow((request, answer, nth) => {
      if (!isWeak) return script(request, answer, nth)
      isWeak = false
      answer.send(500)
    })
    expect(await ask()).toEqual(credentials)
  })

  test('is asked three times when it is down', async () => {
    server.follow((_, answer) => answer.send(503))
    const fault = await faultOf(ask())
    expect([fault.message, server.requests.length]).toEqual([
      'asking for credentials: no-credentials the service answered 503',
      3,
    ])
  })

  test.each([
    ['no credentials', '{}', /without credentials|not XML/],
    ['half of them', '{"AccessKeyId":"x"}', /without credentials|not XML/],
    ['no credentials in XML', '<a/>', /without credentials|not JSON/],
    ['half of them in XML', xml.slice(0, 300), /not (?:XML|JSON)/],
    [
      'another half in XML',
      xml.replace('SecretAccessKey', 'a').replace('/SecretAccessKey', '/a'),
      /without credentials|not JSON/,
    ],
    ['a page', '<html><p>', /an answer that is not/],
    ['a list', '[1]', /an answer (?:that is not XML|without credentials)/],
    ['nothing', '', /an answer that is not/],
    ['too much', 'x'.repeat(70_000), /an answer of more than 65536 bytes/],
  ])('that answers with %s is a fault, and none of it is told', async (_, text, words) => {
    server.follow((request, answer, nth) => {
      const isLast = !/token|security-credentials\/$/.test(request.target)
      return isLast || text.length > 65_536 ? answer.send(200, text || ' ') : script(request, answer, nth)
    })
    const fault = await faultOf(ask())
    expect(fault.code).toBe('no-credentials')
    expect(fault.message).toMatch(words)
    expect(fault.message.length).toBeLessThan(120)
  })

  test('sends nobody elsewhere with what it is asked', async () => {
    server.follow((request, answer) =>
      request.target === '/elsewhere' ? answer.send(200, json) : answer.send(302, '', { location: '/elsewhere' }),
    )
    expect((await faultOf(ask())).message).toContain('the service answered 302')
    expect(server.requests.length).toBe(1)
  })
})

test('a web identity is asked for with the role, and nothing is signed', async () => {
  server.follow(sts)
  await askForWebIdentity({ stsEndpoint: `${server.url}/`, roleArn: 'arn:aws:iam::1:role/berth', tokenFile })
  const [request] = server.requests
  expect([request?.target, request?.headers['authorization'], request?.headers['content-type']]).toEqual([
    '/',
    undefined,
    'application/x-www-form-urlencoded',
  ])
  expect(Object.fromEntries(new URLSearchParams(request?.body.toString()))).toEqual({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: 'arn:aws:iam::1:role/berth',
    RoleSessionName: 'berth',
    WebIdentityToken: 'the.web.token',
  })
})

test('what a service says no with is told by its code alone', async () => {
  await Bun.write(tokenFile, 'another.token')
  server.follow(sts)
  const fault = await faultOf(askForWebIdentity({ stsEndpoint: server.url, roleArn: 'r', tokenFile }))
  expect([fault.message, server.requests.length]).toEqual([
    'asking for credentials: no-credentials the service answered 400 InvalidIdentityToken',
    1,
  ])
})

describe('a token file', () => {
  test('is read each time', async () => {
    server.follow(container)
    await Bun.write(tokenFile, 'old')
    await faultOf(askContainer(server.url, { tokenFile }))
    await Bun.write(tokenFile, 'the.web.token')
    expect(await askContainer(server.url, { tokenFile })).toEqual(credentials)
  })

  test.each([
    ['that is not there', undefined, 'the token file cannot be read'],
    ['without a word', ' \n', 'the token is not one line of text'],
    ['of two lines', 'a\nx-other: b', 'the token is not one line of text'],
  ])('%s is a fault', async (_, text, words) => {
    const path = join(folder, text === undefined ? 'none' : 'odd')
    if (text !== undefined) await Bun.write(path, text)
    server.follow(container)
    expect((await faultOf(askContainer(server.url, { tokenFile: path }))).message).toContain(words)
    expect(server.requests).toEqual([])
  })
})

describe('the choice', () => {
  const none: CredentialSettings = {
    s3Region: 'eu-test-1',
    s3AccessKey: undefined,
    s3SecretKey: undefined,
    s3SessionToken: undefined,
    s3RoleArn: undefined,
    s3TokenFile: undefined,
    s3StsEndpoint: undefined,
    s3CredentialsPath: undefined,
    s3CredentialsUri: undefined,
    s3CredentialsToken: undefined,
    s3CredentialsTokenFile: undefined,
  }
  const role = { s3RoleArn: 'r', s3TokenFile: tokenFile, s3StsEndpoint: server.url }

  test('is a fixed key before all', async () => {
    server.follow(sts)
    const source = chooseCredentials({ ...none, ...role, s3AccessKey: 'id', s3SecretKey: 'word', s3SessionToken: 't' })
    expect(await source.get()).toEqual({
      accessKeyId: 'id',
      secretAccessKey: 'word',
      sessionToken: 't',
      expiresAt: undefined,
    })
    expect(server.requests).toEqual([])
  })

  test('is then a role by a web identity', async () => {
    server.follow(sts)
    const source = chooseCredentials({ ...none, ...role, s3CredentialsUri: 'http://127.0.0.1:1/' })
    expect(source.current()).toBeUndefined()
    expect(await source.get()).toEqual(credentials)
  })

  test('is then a container', async () => {
    server.follow(container)
    const uri = { s3CredentialsUri: server.url, s3CredentialsTokenFile: tokenFile }
    expect(await chooseCredentials({ ...none, ...uri }).get()).toEqual(credentials)
  })

  test('is no key without its secret, nor the other way round', async () => {
    for (const half of [{ s3AccessKey: 'id' }, { s3SecretKey: 'word' }]) {
      expect(await errorOf((async () => chooseCredentials({ ...none, ...half }))())).toMatchObject({
        message: 'an S3 access key needs its id and its secret',
      })
    }
  })
})
