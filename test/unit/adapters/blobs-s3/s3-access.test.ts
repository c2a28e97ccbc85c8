// What a bucket requires beside the bytes: encryption, the right time, tokens that are valid, and addresses for clients.
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { FixedCredentials, RenewedCredentials } from '../../../../src/adapters/blobs-s3/credentials.ts'
import type { CredentialSource } from '../../../../src/adapters/blobs-s3/request-sender.ts'
import type { S3Client, S3ClientSettings } from '../../../../src/adapters/blobs-s3/s3-client.ts'
import { bodyOf, errorXml, openS3Client, readAll, s3ErrorOf, TestTime } from '../../../support/s3/s3-client.ts'
import type { S3Keys } from '../../../support/s3/s3-signature.ts'
import { type S3Stub, startS3Stub } from '../../../support/s3/s3-stub.ts'
import { startScriptedServer } from '../../../support/server/scripted-server.ts'

const stub = startS3Stub()
afterAll(() => stub.stop())

function fixedKeysOf(server: S3Stub): FixedCredentials {
  return new FixedCredentials(server.accessKey, server.secretKey, undefined)
}

function open(more: Partial<S3ClientSettings> = {}, server = stub, time = new TestTime()): S3Client {
  const { region, bucket } = server
  return openS3Client(server.url, { region, bucket, credentials: fixedKeysOf(server), ...more }, time)
}

test('encryption is requested for each object and each upload, but not for parts, and with a key only from KMS', async () => {
  const strict = startS3Stub({ mustEncrypt: true, partBytesMin: 1 })
  const client = open({ encryption: 'aws:kms', kmsKeyId: 'the-key' }, strict)
  await client.put('one', bodyOf('bytes'))
  const id = await client.createUpload('two')
  await client.completeUpload('two', id, [await client.uploadPart('two', id, 1, bodyOf('bytes'))], 5)
  await open({ encryption: 'AES256', kmsKeyId: 'the-key' }, strict).put('three', bodyOf('bytes'))
  expect((await s3ErrorOf(open({}, strict).put('four', bodyOf('bytes')))).status).toBe(403)

  const header = 'x-amz-server-side-encryption'
  const sent = strict
    .requests()
    .map(({ operation, headers }) => [operation, headers[header], headers[`${header}-aws-kms-key-id`]].join(' '))
  expect(sent).toEqual([
    'PutObject aws:kms the-key',
    'CreateMultipartUpload aws:kms the-key',
    'UploadPart  ',
    'CompleteMultipartUpload  ',
    'PutObject AES256 ',
    'PutObject  ',
  ])
  await strict.stop()
})

test('downloads use `fetch` where there is an HTTP proxy, because their own connections cannot pass through it', async () => {
  const agents: (string | undefined)[] = []
  for (const usesProxy of [false, true]) {
    const client = open({ usesProxy })
    await client.put('behind', bodyOf('bytes'))
    expect((await readAll(await client.open('behind', 5))).toString()).toBe('bytes')
    agents.push(stub.requests().at(-1)?.headers['user-agent'])
  }
  expect(agents).toEqual([undefined, expect.stringContaining('Bun')])
})

describe('a presigned address', () => {
  test('works without credentials and for every range, until it expires, and only for that object', async () => {
    const content = crypto.getRandomValues(Buffer.alloc(50_000))
    const client = open()
    const name = "public/a b+c'(d)*!~\u00fc"
    await client.put(name, bodyOf(content))
    const address = client.presign(name, 60) ?? ''
    const whole = await fetch(address)
    expect([whole.status, Buffer.from(await whole.arrayBuffer()).equals(content)]).toEqual([200, true])
    const part = await fetch(address, { headers: { range: 'bytes=1-3' } })
    expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([206, content.subarray(1, 4)])

    for (const changed of [address.replace('public', 'publik'), address.replace('Expires=60', 'Expires=61')]) {
      expect(changed).not.toBe(address)
      expect((await fetch(changed)).status).toBe(403)
    }
    expect((await fetch(address, { method: 'PUT', body: 'x' })).status).toBe(403)
    stub.moveClock(61_000)
    expect((await fetch(address)).status).toBe(403)
    stub.moveClock(-61_000)
    expect((await fetch(address)).status).toBe(200)
  })

  test('names the public endpoint, in the style of the bucket, and is valid for one second to one week', () => {
    const publicEndpoint = 'https://cdn.example/base'
    const inPath = open({ publicEndpoint }).presign('a/b', 0.2)
    expect(inPath).toStartWith(`https://cdn.example/base/${stub.bucket}/a/b?X-Amz-`)
    expect(inPath).toContain('X-Amz-Expires=1&')
    const inHost = open({ publicEndpoint, endpoint: 'http://localhost', isPathStyle: false }).presign('a/b', 1e9)
    expect(inHost).toStartWith(`https://${stub.bucket}.cdn.example/base/a/b?X-Amz-`)
    expect(inHost).toContain('X-Amz-Expires=604800&')
  })

  test.each([
    [undefined, false],
    [59_000, false],
    [61_000, true],
  ])('with credentials that end in %p ms, exists: %p', (leftMs, exists) => {
    const time = new TestTime()
    const keys = { accessKeyId: 'A', secretAccessKey: 'S', sessionToken: 'T', expiresAt: time.now() + (leftMs ?? 0) }
    const ending: CredentialSource = {
      current: () => (leftMs === undefined ? undefined : keys),
      get: async () => keys,
      renew: async () => false,
    }

    expect(open({ credentials: ending }, stub, time).presign('x', 3_600) !== undefined).toBe(exists)
  })
})

test('the bucket may stand in the host name', async () => {
  const endpoint = stub.url.replace('127.0.0.1', 'localhost')
  const client = open({ endpoint, isPathStyle: false })
  await client.probe()
  await client.put('virtual/host', bodyOf('bytes'))
  expect((await readAll(await client.open('virtual/host', 5))).toString()).toBe('bytes')
  expect(stub.requests().at(-1)?.target).toBe('/virtual/host')
})

const hourMs = 3_600_000
const count = 40
/** The rest waits for a slot, and is signed when some requests have been rejected already. */
const requestsMax = 16
const names = Array.from({ length: count }, (_, number) => `many/${number}`)

const calls: readonly (readonly [string, (client: S3Client, name: string) => Promise<unknown>])[] = [
  ['PutObject', (client, name) => client.put(name, bodyOf('other bytes'))],
  ['HeadObject, whose response has no reason', (client, name) => client.findSize(name)],
  ['DeleteObject', (client, name) => client.remove(name)],
  ['CreateMultipartUpload', (client, name) => client.createUpload(name)],
]

describe.each(calls)('many requests at once: %s', (_, call) => {
  let server: S3Stub | undefined
  afterEach(() => server?.stop())

  /** Sends all requests after `change`. Gives the status of each response, once it is certain that all succeeded. */
  async function sendAll(at: S3Stub, client: S3Client, change: () => void) {
    for (const name of names) await client.put(name, bodyOf('bytes'))
    change()
    const before = at.requests().length
    const all = await Promise.allSettled(names.map((name) => call(client, name)))
    expect(all.filter(({ status }) => status === 'rejected')).toEqual([])
    const sent = at.requests().slice(before)
    const tries = Map.groupBy(sent, ({ target }) => target)
    expect(Math.max(...[...tries.values()].map((of) => of.length))).toBe(2)
    return sent.map(({ status }) => status)
  }

  test.each([-2 * hourMs, 2 * hourMs])(
    'succeed when the clock of S3 is off by %d ms, which is learned',
    async (byMs) => {
      server = startS3Stub()
      const at = server
      const time = new TestTime()
      const client = open({ requestsMax }, at, time)
      const statuses = await sendAll(at, client, () => at.moveClock(byMs))

      // The control: several requests were rejected. Each is repeated once, without a pause.
      const rejected = statuses.filter((status) => status === 403).length
      expect(rejected).toBeGreaterThan(1)
      expect(statuses.length).toBe(count + rejected)
      expect(time.sleeps).toEqual([])

      const before = at.requests().length
      await client.put('afterwards', bodyOf('bytes'))
      expect(at.requests().length).toBe(before + 1)
      expect((await fetch(client.presign('afterwards', 60) ?? '')).status).toBe(200)
    },
  )

  test('succeed when their token expires, and one fetch gives them another', async () => {
    server = startS3Stub({ keys: keysOf(1) })
    const at = server
    let fetches = 0
    let now = Date.now()
    const fetchKeys = async () => {
      fetches += 1
      const { accessKey, secretKey, sessionToken } = keysOf(fetches)
      // As long as a request over the network, so that some are rejected meanwhile, and some afterwards.
      await Bun.sleep(20)
      return { accessKeyId: accessKey, secretAccessKey: secretKey, sessionToken, expiresAt: undefined }
    }
    const client = open({ requestsMax, credentials: new RenewedCredentials(fetchKeys, () => now) }, at)
    const statuses = await sendAll(at, client, () => {
      now += 60_000
      at.changeKeys(keysOf(2))
    })
    expect(statuses.filter((status) => status === 400).length).toBeGreaterThan(1)
    expect(fetches).toBe(2)

    now += 60_000
    // The next keys are rejected too, and are not fetched a second time for one request.
    at.changeKeys(keysOf(9))
    const before = at.requests().length
    expect((await s3ErrorOf(client.put('token', bodyOf('bytes')))).code).toBe('InvalidAccessKeyId')
    expect([fetches, at.requests().length - before]).toEqual([3, 2])
  })
})

function keysOf(number: number): Required<S3Keys> {
  return { accessKey: `A${number}`, secretKey: `S${number}`, sessionToken: `T${number}` }
}

test('a request is signed again if our clock is corrected while it is sent, but not if it lacks a right', async () => {
  const time = new TestTime()
  time.offsetMs = 2 * hourMs
  const server = await startScriptedServer()
  const date = () => new Date().toUTCString()
  server.follow((_, answer, nth) => {
    time.offsetMs = 0
    if (nth > 1) return answer.send(204, '', { date: date() })
    answer.send(403, errorXml('RequestTimeTooSkewed'), { date: date() })
  })
  await openS3Client(server.url, {}, time).remove('x')
  const stamps = server.requests.map(({ headers }) => headers['x-amz-date']?.slice(0, 11))
  expect([stamps.length, new Set(stamps).size]).toEqual([2, 2])

  server.follow((_, answer) => answer.send(403, errorXml('AccessDenied'), { date: new Date(0).toUTCString() }))
  expect((await s3ErrorOf(openS3Client(server.url).remove('x'))).code).toBe('AccessDenied')
  expect(server.requests.length).toBe(1)
  await server.stop()
})
