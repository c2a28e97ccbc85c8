// The stub accepts only valid signatures. The first test checks its arithmetic with a published example, so
// that stub and signer cannot be wrong in the same way.
import { afterAll, describe, expect, test } from 'bun:test'
import { askS3, readS3 } from '../../support/s3/s3-server.ts'
import { canonicalRequest, presign, sha256Hex, signatureOf, signHeaders } from '../../support/s3/s3-signature.ts'
import { startS3Stub } from '../../support/s3/s3-stub.ts'

const stub = startS3Stub()
afterAll(() => stub.stop())
stub.plant('held', new TextEncoder().encode('some bytes'))

const address = `${stub.url}/${stub.bucket}/held`
const ask = { method: 'GET', url: address, region: stub.region }

const codeOf = async (answer: Promise<Response>) => (await readS3(answer)).code

function send(headers: Record<string, string>, url = address, method = 'GET'): Promise<string> {
  return codeOf(fetch(url, { method, headers }))
}

describe('a signature in the header', () => {
  test('is calculated as in the example that AWS publishes (GET object with a range)', () => {
    const headers = new Headers({
      host: 'examplebucket.s3.amazonaws.com',
      range: 'bytes=0-9',
      'x-amz-content-sha256': sha256Hex(''),
      'x-amz-date': '20130524T000000Z',
    })
    const canonical = canonicalRequest({
      method: 'GET',
      target: '/test.txt',
      headers,
      signedNames: ['host', 'range', 'x-amz-content-sha256', 'x-amz-date'],
      payloadHash: sha256Hex(''),
    })
    expect(
      signatureOf(canonical, 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', {
        stamp: '20130524T000000Z',
        region: 'us-east-1',
      }),
    ).toBe('f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41')
  })

  test('lets in when it is right', async () => {
    expect(await send(signHeaders(ask, stub))).toBe('200')
  })

  test('is refused when one digit of it is bent', async () => {
    const headers = signHeaders(ask, stub)
    const bent = (headers['authorization'] ?? '').replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))
    expect(await send({ ...headers, authorization: bent })).toBe('403 SignatureDoesNotMatch')
  })

  test('is refused when it is of another secret, method, name, query, header or host', async () => {
    const wrongSecret = { ...stub, secretKey: 'guessed' }
    const wrong = '403 SignatureDoesNotMatch'
    expect(await send(signHeaders(ask, wrongSecret))).toBe(wrong)
    expect(await send(signHeaders({ ...ask, method: 'PUT' }, stub))).toBe(wrong)
    expect(await send(signHeaders({ ...ask, url: `${address}2` }, stub))).toBe(wrong)
    expect(await send(signHeaders({ ...ask, url: `${address}?x-id=1` }, stub), `${address}?x-id=2`)).toBe(wrong)
    const ranged = signHeaders({ ...ask, headers: { range: 'bytes=0-1' } }, stub)
    expect(await send({ ...ranged, range: 'bytes=0-2' })).toBe(wrong)
    expect(await send({ ...signHeaders(ask, stub), host: 'elsewhere:80' })).toBe(wrong)
  })

  test('is refused when there is none, or none that can be read', async () => {
    expect(await send({})).toBe('403 AccessDenied')
    expect(await send({ ...signHeaders(ask, stub), authorization: 'AWS key:signature' })).toBe(
      '400 AuthorizationHeaderMalformed',
    )
  })

  test('is refused from an unknown key, and for another region', async () => {
    expect(await send(signHeaders(ask, { ...stub, accessKey: 'NOBODY' }))).toBe('403 InvalidAccessKeyId')
    expect(await send(signHeaders({ ...ask, region: 'mars-1' }, stub))).toBe('400 AuthorizationHeaderMalformed')
  })

  test('is refused when the clocks are more than 15 minutes apart, whichever is wrong', async () => {
    const minute = 60_000
    expect(await send(signHeaders({ ...ask, timeMs: Date.now() - 14 * minute }, stub))).toBe('200')
    expect(await send(signHeaders({ ...ask, timeMs: Date.now() - 16 * minute }, stub))).toBe('403 RequestTimeTooSkewed')
    expect(await send(signHeaders({ ...ask, timeMs: Date.now() + 16 * minute }, stub))).toBe('403 RequestTimeTooSkewed')
    stub.moveClock(60 * minute)
    const late = await fetch(address, { headers: signHeaders(ask, stub) })
    stub.moveClock(-60 * minute)
    expect(late.status).toBe(403)
    expect(Date.parse(late.headers.get('date') ?? '') - Date.now()).toBeGreaterThan(59 * minute)
  })

  test('must cover every header of S3', async () => {
    const headers = { ...signHeaders(ask, stub), 'x-amz-user-agent': 'afterthought' }
    expect(await send(headers)).toBe('403 AccessDenied')
  })

  test('must speak of the body that came', async () => {
    const put = (headers: Record<string, string>) =>
      codeOf(askS3(stub, { method: 'PUT', target: 'bodies', headers, body: 'the body' }))
    expect(await put({ 'x-amz-content-sha256': sha256Hex('another body') })).toBe('400 XAmzContentSHA256Mismatch')
    expect(await put({ 'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER' })).toBe('501 NotImplemented')
    expect(await put({ 'content-encoding': 'aws-chunked' })).toBe('501 NotImplemented')
    expect(stub.objects().has('bodies')).toBe(false)
    expect(await put({ 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' })).toBe('200')
    expect(await put({})).toBe('200')
  })
})

describe('a signature in the address', () => {
  const order = { ...ask, lifetimeSeconds: 60 }
  const get = (url: string, headers = {}) => codeOf(fetch(url, { headers }))

  test('lets in when it is right, with a range and without', async () => {
    expect(await get(presign(order, stub))).toBe('200')
    const part = await fetch(presign(order, stub), { headers: { range: 'bytes=5-' } })
    expect([part.status, await part.text()]).toEqual([206, 'bytes'])
  })

  test('says what the answer shall look like, and is bent when that is changed', async () => {
    const url = presign({ ...order, url: `${address}?response-content-type=application%2Fzip` }, stub)
    expect((await fetch(url)).headers.get('content-type')).toBe('application/zip')
    expect(await get(url.replace('zip', 'xml'))).toBe('403 SignatureDoesNotMatch')
  })

  test('is refused when it is bent, expired, of another secret, or of another method', async () => {
    expect(await get(presign(order, stub).replace(/.$/, (digit) => (digit === '0' ? '1' : '0')))).toBe(
      '403 SignatureDoesNotMatch',
    )
    expect(await get(presign({ ...order, timeMs: Date.now() - 62_000 }, stub))).toBe('403 AccessDenied')
    expect(await get(presign({ ...order, timeMs: Date.now() - 50_000 }, stub))).toBe('200')
    expect(await get(presign(order, { ...stub, secretKey: 'guessed' }))).toBe('403 SignatureDoesNotMatch')
    expect(await get(presign({ ...order, method: 'HEAD' }, stub))).toBe('403 SignatureDoesNotMatch')
  })

  test('lives at most a week', async () => {
    expect(await get(presign({ ...order, lifetimeSeconds: 604_800 }, stub))).toBe('200')
    expect(await get(presign({ ...order, lifetimeSeconds: 604_801 }, stub))).toBe(
      '400 AuthorizationQueryParametersError',
    )
  })

  test('is not joined by one in the header', async () => {
    expect(await get(presign(order, stub), { authorization: 'Basic eDp5' })).toBe('400 InvalidArgument')
  })
})

describe('keys that end', () => {
  const keys = { accessKey: 'ASIATEMPORARY', secretKey: 's3cret', sessionToken: 'token/with+signs==' }
  const ended = startS3Stub({ keys })
  afterAll(() => ended.stop())
  const list = { method: 'GET', url: `${ended.url}/${ended.bucket}?list-type=2`, region: ended.region }
  const sendTo = (headers: Record<string, string>) => codeOf(fetch(list.url, { headers }))

  test('need their token, in the header and in the address', async () => {
    expect(await sendTo(signHeaders(list, keys))).toBe('200')
    expect(await codeOf(fetch(presign({ ...list, lifetimeSeconds: 9 }, keys)))).toBe('200')
    expect(await sendTo(signHeaders(list, { ...keys, sessionToken: undefined }))).toBe('403 InvalidAccessKeyId')
    expect(await sendTo(signHeaders(list, { ...keys, sessionToken: 'of another' }))).toBe('400 InvalidToken')
    expect(await send(signHeaders(ask, { ...stub, sessionToken: 'not wanted' }))).toBe('400 InvalidToken')
  })

  test('are followed by others', async () => {
    const next = { accessKey: 'ASIANEXT', secretKey: 'n3xt', sessionToken: 'next' }
    ended.changeKeys(next)
    expect(await sendTo(signHeaders(list, keys))).toBe('400 ExpiredToken')
    expect(await sendTo(signHeaders(list, next))).toBe('200')
  })
})
