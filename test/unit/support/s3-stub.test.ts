// Controls: what the stub refuses. test/servers/s3-servers.test.ts compares the stub with real S3 servers, and holds the
// rest of what it does.
import { afterAll, describe, expect, test } from 'bun:test'
import { sendRaw } from '../../support/clients/raw-socket.ts'
import { askS3, readS3, type S3Answer, type S3Request, xmlField } from '../../support/s3/s3-server.ts'
import { presign, type RequestToSign, type S3Keys, sha256Hex, signHeaders } from '../../support/s3/s3-signature.ts'
import { startS3Stub } from '../../support/s3/s3-stub.ts'
import { crc32Of } from '../../support/s3/s3-stub-calls.ts'

const keys = { accessKey: 'BERTHSTUBKEY', secretKey: 'not/so+secret', sessionToken: 'token/with+signs==' }
const stub = startS3Stub({ partBytesMin: 8, keys })
stub.plant('held', new TextEncoder().encode('some bytes'))
afterAll(() => stub.stop())

const url = `${stub.url}/${stub.bucket}/held`
const minuteMs = 60_000
const sse = 'x-amz-server-side-encryption'
const encode = (text: string) => new TextEncoder().encode(text)

interface Forgery {
  readonly signed?: Partial<RequestToSign>
  readonly keys?: Partial<S3Keys>
  /** What is sent instead of what was signed. */
  readonly sent?: Readonly<Record<string, string>>
  readonly sentTo?: string
}

const bend = (text: string) => text.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))

async function sendSigned({ signed = {}, keys: others = {}, sent = {}, sentTo = url }: Forgery): Promise<string> {
  const order = { method: 'GET', url, region: stub.region, ...signed }
  const headers = await signHeaders(order, { ...keys, ...others })
  const { authorization = '' } = headers
  const bent = sent['authorization'] === 'bent' ? { authorization: bend(authorization) } : {}
  return (await readS3(fetch(sentTo, { headers: { ...headers, ...sent, ...bent } }))).code
}

const wrong = '403 SignatureDoesNotMatch'
const forgeries: Readonly<Record<string, readonly [Forgery, string]>> = {
  'none of these': [{}, '200'],
  'a bent signature': [{ sent: { authorization: 'bent' } }, wrong],
  'another secret': [{ keys: { secretKey: 'guessed' } }, wrong],
  'another method': [{ signed: { method: 'PUT' } }, wrong],
  'another name': [{ signed: { url: `${url}2` } }, wrong],
  'another query': [{ signed: { url: `${url}?x-id=1` }, sentTo: `${url}?x-id=2` }, wrong],
  'another header': [{ signed: { headers: { range: 'bytes=0-1' } }, sent: { range: 'bytes=0-2' } }, wrong],
  'another host': [{ sent: { host: 'elsewhere:80' } }, wrong],
  'an old form': [{ sent: { authorization: 'AWS key:signature' } }, '400 AuthorizationHeaderMalformed'],
  'an unknown key': [{ keys: { accessKey: 'NOBODY' } }, '403 InvalidAccessKeyId'],
  'no session token': [{ keys: { sessionToken: undefined } }, '403 InvalidAccessKeyId'],
  'the token of another session': [{ keys: { sessionToken: 'of another' } }, '400 InvalidToken'],
  'another region': [{ signed: { region: 'mars-1' } }, '400 AuthorizationHeaderMalformed'],
  'a clock that is 14 minutes late': [{ signed: { timeMs: Date.now() - 14 * minuteMs } }, '200'],
  'a clock that is 16 minutes late': [{ signed: { timeMs: Date.now() - 16 * minuteMs } }, '403 RequestTimeTooSkewed'],
  'a clock that is 16 minutes early': [{ signed: { timeMs: Date.now() + 16 * minuteMs } }, '403 RequestTimeTooSkewed'],
  'an unsigned header of S3': [{ sent: { 'x-amz-user-agent': 'afterthought' } }, '403 AccessDenied'],
}

describe('a signature in the header', () => {
  for (const [what, [forgery, code]] of Object.entries(forgeries))
    test(`with ${what}: ${code}`, async () => expect(await sendSigned(forgery)).toBe(code))

  test('is required', async () => expect((await readS3(fetch(url))).code).toBe('403 AccessDenied'))

  test('of keys that were replaced is refused', async () => {
    const own = startS3Stub({ keys })
    own.changeKeys({ ...keys, accessKey: 'NEXT' })
    expect((await readS3(askS3(own, { method: 'HEAD', target: '' }))).status).toBe(400)
    expect((await readS3(askS3({ ...own, accessKey: 'NEXT' }, { method: 'HEAD', target: '' }))).status).toBe(200)
    await own.stop()
  })
})

describe('a signature in the address', () => {
  const sign = (more: Partial<RequestToSign> = {}, own: S3Keys = keys) =>
    presign({ method: 'GET', url, region: stub.region, lifetimeSeconds: 60, ...more }, own)
  const get = async (address: string, headers = {}) => (await readS3(fetch(address, { headers }))).code
  const cases: Readonly<Record<string, readonly [() => Promise<string>, string]>> = {
    'none of these': [sign, '200'],
    'a bent signature': [async () => (await sign()).replace(/(?<=X-Amz-Signature=)\w+/, bend), wrong],
    'another parameter': [async () => (await sign({ url: `${url}?x-id=1` })).replace('x-id=1', 'x-id=2'), wrong],
    'another secret': [() => sign({}, { ...keys, secretKey: 'guessed' }), wrong],
    'another method': [() => sign({ method: 'HEAD' }), wrong],
    'an end that is near': [() => sign({ timeMs: Date.now() - 50_000 }), '200'],
    'an end that is past': [() => sign({ timeMs: Date.now() - 62_000 }), '403 AccessDenied'],
    'a life of more than a week': [
      async () => (await sign()).replace('Expires=60', 'Expires=604801'),
      '400 AuthorizationQueryParametersError',
    ],
  }
  for (const [what, [make, code]] of Object.entries(cases))
    test(`with ${what}: ${code}`, async () => expect(await get(await make())).toBe(code))

  test('and another in the header are refused together', async () =>
    expect(await get(await sign(), { authorization: 'Basic eDp5' })).toBe('400 InvalidArgument'))
})

function ask(method: string, target: string, rest: Omit<S3Request, 'method' | 'target'> = {}): Promise<S3Answer> {
  return readS3(askS3(stub, { method, target, ...rest }))
}

const bodies: Readonly<Record<string, readonly [Readonly<Record<string, string>>, string]>> = {
  'its CRC32': [{ 'x-amz-checksum-crc32': 'NSRBwg==' }, '200'],
  'another CRC32': [{ 'x-amz-checksum-crc32': 'AAAAAA==' }, '400 BadDigest'],
  'its MD5': [{ 'content-md5': 'kAFQmDzST7DWlj99KOF/cg==' }, '200'],
  'another MD5': [{ 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' }, '400 BadDigest'],
  'another hash': [{ 'x-amz-content-sha256': sha256Hex('another') }, '400 XAmzContentSHA256Mismatch'],
  'signed chunks': [{ 'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER' }, '501 NotImplemented'],
  'an unknown header of S3': [{ 'x-amz-copy-source': 'y' }, '501 NotImplemented'],
  'an unknown encryption': [{ [sse]: 'ROT13' }, '400 InvalidArgument'],
}

for (const [what, [headers, code]] of Object.entries(bodies))
  test(`an object with ${what}: ${code}`, async () =>
    expect((await ask('PUT', 'summed', { headers, body: 'abc' })).code).toBe(code))

test('an object needs a Content-Length', async () => {
  const target = `${stub.url}/${stub.bucket}/chunked`
  const signed = await signHeaders({ method: 'PUT', url: target, region: stub.region, body: 'abc' }, keys)
  const lines = Object.entries(signed).map(([name, value]) => `${name}: ${value}\r\n`)
  const { statuses } = await sendRaw(
    Number(new URL(stub.url).port),
    `PUT /${stub.bucket}/chunked HTTP/1.1\r\n${lines.join('')}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
    '3\r\nabc\r\n0\r\n\r\n',
  )
  expect(statuses).toEqual([411])
  expect(stub.objects().has('chunked')).toBe(false)
})

test('parts have the checksums that their upload was opened with', async () => {
  const begin = async (headers: Readonly<Record<string, string>> = {}) => {
    const { text } = await ask('POST', 'parts?uploads', { headers })
    return encodeURIComponent(xmlField(text, 'UploadId') ?? '')
  }
  const put = async (id: string, headers = {}) => {
    const answer = await ask('PUT', `parts?partNumber=1&uploadId=${id}`, { body: 'part', headers })
    return answer.headers.get('etag') ?? answer.code
  }
  const complete = async (id: string, etag: string) => {
    const part = `<Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part>`
    const body = `<CompleteMultipartUpload>${part}</CompleteMultipartUpload>`
    return (await ask('POST', `parts?uploadId=${id}`, { body })).code
  }
  const sum = { 'x-amz-checksum-crc32': crc32Of(encode('part')) }
  const crc32 = { 'x-amz-checksum-algorithm': 'CRC32' }
  const composite = await begin(crc32)
  const whole = await begin({ ...crc32, 'x-amz-checksum-type': 'FULL_OBJECT' })
  expect([await put(await begin(), sum), await put(composite)]).toEqual(['400 InvalidRequest', '400 InvalidRequest'])
  expect(await complete(composite, await put(composite, sum))).toBe('400 InvalidRequest')
  expect(await complete(whole, await put(whole, sum))).toBe('200')
})
