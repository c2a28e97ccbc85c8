// What the stub keeps, and what it refuses once a request is signed.
import { afterAll, describe, expect, test } from 'bun:test'
import { sendRaw } from '../../support/clients/raw-socket.ts'
import { until } from '../../support/clocks/until.ts'
import { askS3, readS3, type S3Answer, type S3Request, xmlField } from '../../support/s3/s3-server.ts'
import { signHeaders } from '../../support/s3/s3-signature.ts'
import { startS3Stub } from '../../support/s3/s3-stub.ts'
import { crc32Of } from '../../support/s3/s3-stub-calls.ts'

const stub = startS3Stub({ partBytesMin: 8, pageSize: 2 })
const host = new URL(stub.url).host
afterAll(() => stub.stop())

function ask(method: string, target: string, rest: Omit<S3Request, 'method' | 'target'> = {}): Promise<S3Answer> {
  return readS3(askS3(stub, { method, target, ...rest }))
}

async function begin(name: string, headers = {}): Promise<string> {
  const { text } = await ask('POST', `${name}?uploads`, { headers })
  return encodeURIComponent(xmlField(text, 'UploadId') ?? '')
}

async function putPart(name: string, id: string, number: number, body: string, headers = {}): Promise<string> {
  const { code, headers: answered } = await ask('PUT', `${name}?partNumber=${number}&uploadId=${id}`, { body, headers })
  return answered.get('etag') ?? code
}

function complete(name: string, id: string, parts: readonly (readonly [number, string])[]): Promise<S3Answer> {
  const items = parts.map(([number, etag]) => `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag></Part>`)
  const body = `<CompleteMultipartUpload>${items.join('')}</CompleteMultipartUpload>`
  return ask('POST', `${name}?uploadId=${id}`, { body })
}

describe('objects', () => {
  test('are refused when their sums are wrong', async () => {
    const put = async (headers: Record<string, string>) => (await ask('PUT', 'summed', { headers, body: 'abc' })).code
    const crc32 = crc32Of(new TextEncoder().encode('abc'))
    expect(crc32).toBe('NSRBwg==')
    expect(await put({ 'x-amz-checksum-crc32': crc32 })).toBe('200')
    expect(await put({ 'x-amz-checksum-crc32': 'AAAAAA==' })).toBe('400 BadDigest')
    expect(await put({ 'content-md5': 'kAFQmDzST7DWlj99KOF/cg==' })).toBe('200')
    expect(await put({ 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' })).toBe('400 BadDigest')
  })

  test('need a Content-Length', async () => {
    const url = `${stub.url}/${stub.bucket}/chunked`
    const signed = signHeaders({ method: 'PUT', url, region: stub.region, body: 'abc' }, stub)
    const lines = Object.entries(signed).map(([name, value]) => `${name}: ${value}\r\n`)
    const { answers } = await sendRaw(
      Number(host.split(':')[1]),
      `PUT /${stub.bucket}/chunked HTTP/1.1\r\n${lines.join('')}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
      '3\r\nabc\r\n0\r\n\r\n',
    )
    expect(answers[0]?.status).toBe(411)
    expect(xmlField(answers[0]?.body ?? '', 'Code')).toBe('MissingContentLength')
    expect(stub.objects().has('chunked')).toBe(false)
  })

  test('are not kept when their bytes break off', async () => {
    const url = `${stub.url}/${stub.bucket}/broken`
    const headers = { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD', 'content-length': '100' }
    const signed = signHeaders({ method: 'PUT', url, region: stub.region, headers }, stub)
    const lines = Object.entries(signed).map(([name, value]) => `${name}: ${value}\r\n`)
    const socket = await Bun.connect({
      hostname: '127.0.0.1',
      port: Number(host.split(':')[1]),
      socket: { data() {} },
    })
    socket.write(`PUT /${stub.bucket}/broken HTTP/1.1\r\n${lines.join('')}\r\nonly these`)
    socket.flush()
    socket.end()
    await until('the stub is through with it', () => stub.requests().find(({ target }) => target.endsWith('/broken')))
    expect((await ask('HEAD', 'broken')).status).toBe(404)
  })

  test('say how they are encrypted, and where they must be they are', async () => {
    const sse = 'x-amz-server-side-encryption'
    const put = await ask('PUT', 'secret', { headers: { [sse]: 'AES256' }, body: 'x' })
    expect([put.headers.get(sse), (await ask('HEAD', 'secret')).headers.get(sse)]).toEqual(['AES256', 'AES256'])
    expect((await ask('PUT', 'secret', { headers: { [sse]: 'ROT13' }, body: 'x' })).code).toBe('400 InvalidArgument')
    expect((await ask('GET', 'secret', { headers: { [sse]: 'AES256' } })).code).toBe('400 InvalidArgument')
    const strict = startS3Stub({ mustEncrypt: true })
    const plain = await askS3(strict, { method: 'PUT', target: 'x', body: 'x' })
    const hidden = await askS3(strict, { method: 'PUT', target: 'x', body: 'x', headers: { [sse]: 'aws:kms' } })
    await strict.stop()
    expect([plain.status, hidden.status]).toEqual([403, 200])
  })
})

describe('multipart uploads', () => {
  test('are not completed with parts in disorder, twice, changed, unknown or too small', async () => {
    const id = await begin('refused')
    const old = await putPart('refused', id, 1, 'before it was changed')
    const first = await putPart('refused', id, 1, 'eight or more')
    const small = await putPart('refused', id, 2, 'small')
    const last = await putPart('refused', id, 3, 'eight or more')
    expect(old).not.toBe(first)
    const codeOf = async (...parts: [number, string][]) => (await complete('refused', id, parts)).code
    expect(await codeOf([3, last], [1, first])).toBe('400 InvalidPartOrder')
    expect(await codeOf([1, first], [1, first])).toBe('400 InvalidPartOrder')
    expect(await codeOf([1, old], [3, last])).toBe('400 InvalidPart')
    expect(await codeOf([1, first], [4, last])).toBe('400 InvalidPart')
    expect(await codeOf([1, first], [2, small], [3, last])).toBe('400 EntityTooSmall')
    expect(await codeOf()).toBe('400 MalformedXML')
    expect(stub.objects().has('refused')).toBe(false)
    expect(await codeOf([1, first], [2, small])).toBe('200')
  })

  test('have their parts summed as they said at the beginning', async () => {
    const sum = { 'x-amz-checksum-crc32': crc32Of(new TextEncoder().encode('part')) }
    const crc32 = { 'x-amz-checksum-algorithm': 'CRC32' }
    const silent = await begin('silent')
    expect(await putPart('silent', silent, 1, 'part', sum)).toBe('400 InvalidRequest')
    const composite = await begin('composite', crc32)
    expect(await putPart('composite', composite, 1, 'part')).toBe('400 InvalidRequest')
    const part = await putPart('composite', composite, 1, 'part', sum)
    expect((await complete('composite', composite, [[1, part]])).code).toBe('400 InvalidRequest')
    const whole = await begin('whole', { ...crc32, 'x-amz-checksum-type': 'FULL_OBJECT' })
    expect((await complete('whole', whole, [[1, await putPart('whole', whole, 1, 'part', sum)]])).code).toBe('200')
  })

  test('take an encryption at their beginning, and not with a part', async () => {
    const headers = { 'x-amz-server-side-encryption': 'AES256' }
    const id = await begin('hidden', headers)
    expect(await putPart('hidden', id, 1, 'x', headers)).toBe('400 InvalidArgument')
    await complete('hidden', id, [[1, await putPart('hidden', id, 1, 'x')]])
    expect((await ask('HEAD', 'hidden')).headers.get('x-amz-server-side-encryption')).toBe('AES256')
  })
})

describe('the bucket', () => {
  test('is there, and no other is', async () => {
    expect((await ask('HEAD', '')).status).toBe(200)
    const other = { ...stub, bucket: 'other' }
    expect((await askS3(other, { method: 'HEAD', target: '' })).status).toBe(404)
    expect((await readS3(askS3(other, { method: 'GET', target: 'x' }))).code).toBe('404 NoSuchBucket')
  })

  test('may stand in the name of the host', async () => {
    stub.plant('hosted', new TextEncoder().encode('in the host'))
    const url = `http://${stub.bucket}.localhost:${host.split(':')[1]}/hosted`
    const get = (address: string) =>
      fetch(address, { headers: signHeaders({ method: 'GET', url: address, region: stub.region }, stub) })
    expect(await (await get(url)).text()).toBe('in the host')
    expect((await get(url.replace(stub.bucket, 'another'))).status).toBe(404)
  })

  test('takes no parameter and no header that it does not know', async () => {
    expect((await ask('GET', 'x?acl')).code).toBe('501 NotImplemented')
    expect((await ask('PUT', 'x', { headers: { 'x-amz-copy-source': 'y' }, body: '' })).code).toBe('501 NotImplemented')
  })
})
