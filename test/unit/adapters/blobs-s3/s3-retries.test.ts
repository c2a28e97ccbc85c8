// What is tried again, how often, and how long it waits in between.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import type { S3Client } from '../../../../src/adapters/blobs-s3/s3-client.ts'
import type { S3Error } from '../../../../src/adapters/blobs-s3/s3-response.ts'
import { NoSlot } from '../../../../src/lib/slots.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import {
  bodyOf,
  errorXml,
  openS3Client,
  readAll,
  s3ErrorOf,
  TestTime,
  testSecret,
} from '../../../support/s3/s3-client.ts'
import { type Script, startScriptedServer } from '../../../support/server/scripted-server.ts'

const server = await startScriptedServer()
afterAll(() => server.stop())

let time = new TestTime()
beforeEach(() => {
  time = new TestTime()
})

const name = '00/object'
const shortMs = 150

const lists: Readonly<Record<string, string>> = {
  'list-type': '<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>',
  uploads: '<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>',
}

async function drain(pages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of pages) {
    // Only that it ends is of interest.
  }
}

/** Calls that may be carried out twice. */
const repeatable: readonly (readonly [string, (client: S3Client) => Promise<unknown>])[] = [
  ['PutObject', (client) => client.put(name, bodyOf('bytes'))],
  ['GetObject', async (client) => readAll(await client.open(name, 5))],
  ['HeadObject', (client) => client.findSize(name)],
  ['DeleteObject', (client) => client.remove(name)],
  ['UploadPart', (client) => client.uploadPart(name, 'id', 1, bodyOf('bytes'))],
  ['AbortMultipartUpload', (client) => client.abortUpload(name, 'id')],
  ['ListMultipartUploads', (client) => drain(client.listUploads('00/'))],
  ['ListObjectsV2', (client) => drain(client.listObjects('00/'))],
]

/** Answers any of them well. */
const answerWell: Script = ({ method, target }, answer) => {
  if (method === 'HEAD') return answer.begin(200, { 'content-length': '5' })
  const [, list] = Object.entries(lists).find(([parameter]) => target.includes(`${parameter}=`)) ?? []
  answer.send(200, list ?? (method === 'GET' ? 'bytes' : ''), { etag: '"etag"' })
}

type Failing = readonly [words: string, fail: Script, code: string]

function saying(status: number, code: string, headers: Readonly<Record<string, string>> = {}): Script {
  return ({ method }, answer) => answer.send(status, method === 'HEAD' ? '' : errorXml(code), headers)
}

const transient: readonly Failing[] = [
  ['500', saying(500, 'InternalError'), 'InternalError'],
  ['502 of a proxy', (_, answer) => answer.send(502, '<html>bad gateway</html>'), 'unexplained'],
  ['503', saying(503, 'SlowDown'), 'SlowDown'],
  ['504', saying(504, 'Timeout'), 'Timeout'],
  ['429', saying(429, 'TooManyRequests'), 'TooManyRequests'],
  ['a reset', (_, answer) => answer.reset(), 'connection'],
  ['a connection that ends', (_, answer) => answer.close(), 'connection'],
  [
    'an answer that is none',
    (_, answer) => void answer.write('hello\r\n\r\n').then(() => answer.close()),
    'connection',
  ],
  ['silence', () => undefined, 'timeout'],
]

describe.each(repeatable)('%s', (operation, call) => {
  test.each(transient)('is done again after %s', async (words, fail) => {
    server.follow((request, answer, nth) => (nth === 1 ? fail(request, answer, nth) : answerWell(request, answer, nth)))
    const attemptTimeoutMs = words === 'silence' ? shortMs : 5_000
    await call(openS3Client(server.url, { attemptTimeoutMs }, time))

    // A client of HTTP may itself have repeated what broke on a connection that was used before.
    expect(server.requests.length).toBeGreaterThanOrEqual(2)
    expect(time.sleeps).toEqual([100])
  })

  test('is done so often and no more, ever more slowly', async () => {
    server.follow(saying(503, 'SlowDown'))
    const error = await s3ErrorOf(call(openS3Client(server.url, {}, time)))

    expect(error.message).toStartWith(`${operation}: 503 `)
    expect(server.requests.length).toBe(4)
    expect(time.sleeps).toEqual([100, 200, 400])
  })

  test.each([
    [403, 'AccessDenied'],
    [403, 'SignatureDoesNotMatch'],
    [400, 'InvalidRequest'],
    [405, 'MethodNotAllowed'],
    [501, 'NotImplemented'],
    [301, 'PermanentRedirect'],
  ])('is not done again after %d %s', async (status, code) => {
    server.follow(saying(status, code, { location: `${server.url}/elsewhere` }))
    const error = await s3ErrorOf(call(openS3Client(server.url, {}, time)))

    expect(error.status).toBe(status)
    expect([server.requests.length, time.sleeps]).toEqual([1, []])
  })
})

describe('an error whose body never comes', () => {
  test.each([
    [403, 1],
    [500, 4],
  ])('is what its status says: %d is asked for %d times', async (status, tries) => {
    server.follow((_, answer) => answer.begin(status, { 'content-length': '100' }))
    const client = openS3Client(server.url, { attemptTimeoutMs: shortMs }, time)
    const error = await s3ErrorOf(client.put(name, bodyOf('bytes')))

    expect([error.status, error.code, server.requests.length]).toEqual([status, 'unexplained', tries])
  })
})

test('a bucket that is elsewhere is not followed, and where it is is told', async () => {
  const client = openS3Client(server.url, {}, time)
  server.follow(saying(301, 'PermanentRedirect', { 'x-amz-bucket-region': 'eu-west-1', location: server.url }))
  const told = await s3ErrorOf(client.remove(name))
  expect(told.message).toBe('DeleteObject: 301 redirect the bucket is in region eu-west-1')

  server.follow(saying(307, 'TemporaryRedirect', { 'x-amz-bucket-region': '<b>', location: server.url }))
  expect((await s3ErrorOf(client.remove(name))).message).toBe(
    'DeleteObject: 307 redirect the bucket is at another endpoint',
  )
  expect(server.requests.length).toBe(1)
})

describe('what a store wants once only', () => {
  const begin = (client: S3Client) => client.createUpload(name)
  const begun = '<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>'

  test.each([...transient, ['503 ServiceUnavailable', saying(503, 'ServiceUnavailable'), ''] satisfies Failing])(
    'is sent again after an error only if nothing was done: %s',
    async (words, fail, code) => {
      const isRepeated = words.startsWith('503') || words === '429'
      server.follow((request, answer, nth) => (nth === 1 ? fail(request, answer, nth) : answer.send(200, begun)))
      const attemptTimeoutMs = words === 'silence' ? shortMs : 5_000
      const beginning = begin(openS3Client(server.url, { attemptTimeoutMs }, time))
      const result = await beginning.catch((error: S3Error) => error.code)
      expect([result, server.requests.length, time.sleeps]).toEqual(isRepeated ? ['id', 2, [100]] : [code, 1, []])
    },
  )

  test('is repeated if the server was not reached', async () => {
    const gone = await startScriptedServer()
    await gone.stop()
    const error = await s3ErrorOf(begin(openS3Client(gone.url, {}, time)))
    expect([error.message, time.sleeps.length]).toEqual(['CreateMultipartUpload: refused ECONNREFUSED', 3])
  })

  test('goes over a connection of its own, which cannot have been closed meanwhile', async () => {
    server.follow((request, answer, nth) =>
      request.method === 'POST' ? answer.send(200, begun) : answerWell(request, answer, nth),
    )
    const client = openS3Client(server.url, {}, time)
    await client.findSize(name)
    await client.findSize(name)
    await begin(client)
    await begin(client)
    const connections = server.requests.map(({ connection }) => connection)
    expect(connections[0]).toBe(connections[1] ?? 0)
    expect(new Set(connections).size).toBe(3)
  })
})

describe('the wait', () => {
  const failOnce =
    (headers: Readonly<Record<string, string>>): Script =>
    (request, answer, nth) =>
      nth === 1 ? saying(503, 'SlowDown', headers)(request, answer, nth) : answerWell(request, answer, nth)

  test('is a random part of its longest, which grows to ten seconds', async () => {
    time.chance = 0.25
    server.follow(saying(500, 'InternalError'))
    await s3ErrorOf(openS3Client(server.url, { triesMax: 10 }, time).remove(name))
    expect(time.sleeps.map((ms) => ms * 4)).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000])
  })

  test('is what the store asks for', async () => {
    const client = openS3Client(server.url, {}, time)
    server.follow(failOnce({ 'retry-after': '7' }))
    await client.remove(name)
    const date = new Date(1_700_000_000_000)
    server.follow(failOnce({ 'retry-after': new Date(date.getTime() + 9_000).toUTCString(), date: date.toUTCString() }))
    await client.remove(name)
    server.follow(failOnce({ 'retry-after': 'soon' }))
    await client.remove(name)
    expect(time.sleeps).toEqual([7_000, 9_000, 100])
  })

  test('is not made where the store asks for more patience than there is', async () => {
    server.follow(failOnce({ 'retry-after': '3600' }))
    const error = await s3ErrorOf(openS3Client(server.url, {}, time).remove(name))
    expect([error.code, server.requests.length, time.sleeps]).toEqual(['SlowDown', 1, []])
  })
})

describe('a body', () => {
  test('is sent whole again, array or file, large or small, and proved alike', async () => {
    const bytes = crypto.getRandomValues(new Uint8Array(60_000))
    const large = Buffer.concat(Array.from({ length: 20 }, () => bytes))
    for (const given of [bytes, large, new Blob([bytes]), new Blob([large])]) {
      server.follow((request, answer, nth) =>
        nth === 1 ? saying(500, 'InternalError')(request, answer, nth) : answerWell(request, answer, nth),
      )
      const sent = given instanceof Blob ? Buffer.from(await given.arrayBuffer()) : Buffer.from(given)
      const hash = Bun.CryptoHasher.hash('sha256', sent, 'hex')
      await openS3Client(server.url, {}, time).put(name, { bytes: given, sha256: hash, crc32: undefined })
      expect(server.requests.map(({ body }) => body.equals(sent))).toEqual([true, true])
      expect(server.requests.map(({ headers }) => headers['x-amz-content-sha256'])).toEqual([hash, hash])
      expect(server.requests.map(({ headers }) => headers['transfer-encoding'])).toEqual([undefined, undefined])
    }
  })

  test('gives an attempt more time by its size', async () => {
    const bytes = new Uint8Array(1024 * 1024)
    server.follow((_, answer) => void setTimeout(() => answer.send(200), shortMs * 3))
    const client = openS3Client(server.url, { attemptTimeoutMs: shortMs, triesMax: 1 }, time)
    await client.put(name, bodyOf(bytes))
    expect((await s3ErrorOf(client.remove(name))).code).toBe('timeout')
  })
})

test('only so many requests run and wait; others fail at once, and those that wait too long fail too', async () => {
  const held: (() => void)[] = []
  server.follow((_, answer) => void held.push(() => answer.send(200)))
  const client = openS3Client(server.url, { requestsMax: 2, queueMax: 1, attemptTimeoutMs: shortMs }, time)
  // Their size gives them seconds.
  const running = ['1', '2'].map((one) => client.put(one, bodyOf(new Uint8Array(1024 * 1024))))
  while (held.length < 2) await Bun.sleep(5)
  const waiting = errorOf(client.remove('3'))
  expect(await errorOf(client.remove('4'))).toBeInstanceOf(NoSlot)
  expect(await waiting).toBeInstanceOf(NoSlot)
  for (const answer of held) answer()
  await Promise.all(running)
  expect(held.length).toBe(2)
})

test('no request and no error contains a secret', async () => {
  server.follow((_, answer) =>
    answer.send(403, `${errorXml('SignatureDoesNotMatch')}${testSecret}`, { 'x-amz-request-id': 'id-1' }),
  )
  const error = await s3ErrorOf(openS3Client(server.url, {}, time).put(name, bodyOf('bytes')))
  expect(error.message).toBe('PutObject: 403 unexplained (request id-1)')
  expect(Bun.inspect([error, server.requests], { depth: 20 })).not.toContain(testSecret)
  expect(Bun.inspect(server.requests)).toContain('AWS4-HMAC-SHA256 Credential=TESTKEY/')
})
