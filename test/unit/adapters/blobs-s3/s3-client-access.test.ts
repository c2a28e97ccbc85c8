// What a bucket asks for beside the bytes: encryption, the right time, tokens, and addresses that others may use.
import { afterAll, describe, expect, test } from 'bun:test'
import { FixedCredentials } from '../../../../src/adapters/blobs-s3/credentials.ts'
import type { CredentialSource } from '../../../../src/adapters/blobs-s3/request-sender.ts'
import type { S3Client, S3ClientSettings } from '../../../../src/adapters/blobs-s3/s3-client.ts'
import type { S3Credentials } from '../../../../src/adapters/blobs-s3/signature-v4.ts'
import { bodyOf, openS3Client, readAll, s3ErrorOf, TestTime } from '../../../support/s3/s3-client.ts'
import { startS3Stub } from '../../../support/s3/s3-stub.ts'

const stub = startS3Stub()
afterAll(() => stub.stop())

const keys = new FixedCredentials(stub.accessKey, stub.secretKey, undefined)
const content = crypto.getRandomValues(Buffer.alloc(50_000))

function open(more: Partial<S3ClientSettings> = {}, time = new TestTime()): S3Client {
  return openS3Client(stub.url, { region: stub.region, bucket: stub.bucket, credentials: keys, ...more }, time)
}

describe('encryption', () => {
  const strict = startS3Stub({ mustEncrypt: true, partBytesMin: 1 })
  afterAll(() => strict.stop())
  const at = (more: Partial<S3ClientSettings>) =>
    openS3Client(strict.url, {
      region: strict.region,
      bucket: strict.bucket,
      credentials: new FixedCredentials(strict.accessKey, strict.secretKey, undefined),
      ...more,
    })

  test('is asked for with each object and each upload, and not with its parts', async () => {
    const client = at({ encryption: 'aws:kms', kmsKeyId: 'the-key' })
    await client.put('one', bodyOf('bytes'))
    const id = await client.createUpload('two')
    await client.completeUpload('two', id, [await client.uploadPart('two', id, 1, bodyOf('bytes'))], 5)
    const asked = strict
      .requests()
      .map(({ operation, headers }) => [
        operation,
        headers['x-amz-server-side-encryption'],
        headers['x-amz-server-side-encryption-aws-kms-key-id'],
      ])
    expect(asked).toContainEqual(['PutObject', 'aws:kms', 'the-key'])
    expect(asked).toContainEqual(['CreateMultipartUpload', 'aws:kms', 'the-key'])
    expect(asked).toContainEqual(['UploadPart', undefined, undefined])
  })

  test('by the store has no key, and none is not asked for', async () => {
    await at({ encryption: 'AES256', kmsKeyId: 'the-key' }).put('three', bodyOf('bytes'))
    expect(strict.requests().at(-1)?.headers['x-amz-server-side-encryption-aws-kms-key-id']).toBeUndefined()
    expect((await s3ErrorOf(at({}).put('four', bodyOf('bytes')))).status).toBe(403)
  })
})

describe('an address for others', () => {
  test('works without credentials and for every range, for a while, and only for that object', async () => {
    const client = open()
    const name = "public/a b+c'(d)*!~\u00fc"
    await client.put(name, bodyOf(content))
    const address = client.presign(name, 60) ?? ''
    const whole = await fetch(address)
    expect([whole.status, Buffer.from(await whole.arrayBuffer()).equals(content)]).toEqual([200, true])
    const part = await fetch(address, { headers: { range: 'bytes=1-3' } })
    expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([206, content.subarray(1, 4)])

    for (const bent of [address.replace('public', 'publik'), address.replace('Expires=60', 'Expires=61')]) {
      expect(bent).not.toBe(address)
      expect((await fetch(bent)).status).toBe(403)
    }
    expect((await fetch(address, { method: 'PUT', body: 'x' })).status).toBe(403)
    stub.moveClock(61_000)
    expect((await fetch(address)).status).toBe(403)
    stub.moveClock(-61_000)
    expect((await fetch(address)).status).toBe(200)
  })

  test('names the public endpoint, in the style of the bucket', () => {
    const publicEndpoint = 'https://cdn.example/base'
    expect(open({ publicEndpoint }).presign('a/b', 60)).toStartWith(
      `https://cdn.example/base/${stub.bucket}/a/b?X-Amz-`,
    )
    const virtual = open({ publicEndpoint, endpoint: 'http://localhost', isPathStyle: false })
    expect(virtual.presign('a/b', 60)).toStartWith(`https://${stub.bucket}.cdn.example/base/a/b?X-Amz-`)
  })

  test('is good for a second at least, and a week at most', () => {
    expect(open().presign('x', 0.2)).toContain('X-Amz-Expires=1&')
    expect(open().presign('x', 1e9)).toContain('X-Amz-Expires=604800&')
  })

  test('is not there while there are no credentials', async () => {
    const none: CredentialSource = {
      current: () => undefined,
      get: () => Promise.reject(new Error('none')),
      renew: async () => false,
    }
    expect(open({ credentials: none }).presign('x', 60)).toBeUndefined()
  })

  test.each([
    [59_000, false],
    [61_000, true],
  ])('with credentials that end in %d ms, is there: %p', (leftMs, isThere) => {
    const time = new TestTime()
    const keys = { accessKeyId: 'A', secretAccessKey: 'S', sessionToken: 'T', expiresAt: time.now() + leftMs }
    const ending: CredentialSource = { current: () => keys, get: async () => keys, renew: async () => false }

    expect(open({ credentials: ending }, time).presign('x', 3_600) !== undefined).toBe(isThere)
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

describe('what went wrong with time and tokens', () => {
  test.each([-3_600_000, 3_600_000])(
    'a clock that is %d ms off is learned from the refusal, and for good',
    async (offsetMs) => {
      const time = new TestTime()
      time.offsetMs = offsetMs
      const client = open({}, time)
      const before = stub.requests().length
      await client.put('skewed', bodyOf('bytes'))
      await client.remove('skewed')
      expect(
        stub
          .requests()
          .slice(before)
          .map(({ status }) => status),
      ).toEqual([403, 200, 204])
      expect(time.sleeps).toEqual([])
      await client.put('skewed', bodyOf('bytes'))
      expect((await fetch(client.presign('skewed', 60) ?? '')).status).toBe(200)
    },
  )

  test('a HEAD, which is refused without a reason, learns it too', async () => {
    const time = new TestTime()
    time.offsetMs = 3_600_000
    await open().put('headed', bodyOf('bytes'))
    expect(await open({}, time).findSize('headed')).toBe(5)
  })

  test('a token that ended is renewed once, for a HEAD too', async () => {
    const own = startS3Stub({ keys: { accessKey: 'A1', secretKey: 'S1', sessionToken: 'T1' } })
    let current: S3Credentials = { accessKeyId: 'A1', secretAccessKey: 'S1', sessionToken: 'T1', expiresAt: undefined }
    let renewed = 0
    const credentials: CredentialSource = {
      current: () => current,
      get: async () => current,
      renew: async () => {
        renewed += 1
        current = { accessKeyId: 'A2', secretAccessKey: 'S2', sessionToken: 'T2', expiresAt: undefined }
        return true
      },
    }
    const client = openS3Client(own.url, { region: own.region, bucket: own.bucket, credentials })
    await client.put('token', bodyOf('bytes'))
    own.changeKeys({ accessKey: 'A2', secretKey: 'S2', sessionToken: 'T2' })
    expect(await client.findSize('token')).toBe(5)
    expect(renewed).toBe(1)

    const before = own.requests().length
    own.changeKeys({ accessKey: 'A3', secretKey: 'S3', sessionToken: 'T3' })
    const error = await s3ErrorOf(client.put('token', bodyOf('bytes')))
    expect([error.status, renewed, own.requests().length - before]).toEqual([400, 2, 2])
    await own.stop()
  })

  test('a wrong secret is refused, and asked once', async () => {
    const credentials = new FixedCredentials(stub.accessKey, 'wrong', undefined)
    const before = stub.requests().length
    expect((await s3ErrorOf(open({ credentials }).put('x', bodyOf('x')))).code).toBe('SignatureDoesNotMatch')
    expect(stub.requests().length).toBe(before + 1)
  })
})
