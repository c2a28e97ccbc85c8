// A control: each fault of the proxy is what its name says, for the client and for the server behind the proxy.
import { afterAll, afterEach, expect, test } from 'bun:test'
import { generatedBytes } from '../../support/basics/generated-bytes.ts'
import { sendRaw } from '../../support/clients/raw-socket.ts'
import { askS3, readS3, xmlField } from '../../support/s3/s3-server.ts'
import { sha256Hex, signHeaders } from '../../support/s3/s3-signature.ts'
import { startS3Stub } from '../../support/s3/s3-stub.ts'
import { startS3FaultProxy } from '../../support/s3-faults/s3-fault-proxy.ts'
import type { FaultName } from '../../support/s3-faults/s3-faults.ts'

const stub = startS3Stub({ partBytesMin: 4 })
const proxy = await startS3FaultProxy(stub.url)
const broken = { ...stub, url: proxy.url }
afterAll(async () => {
  await proxy.stop()
  await stub.stop()
})
afterEach(() => proxy.clear())

/** The status and the code, the code of the client's error, or `nothing` if there was no answer for 300 ms. */
async function outcome(method: string, target: string, body?: string): Promise<string> {
  const asked = askS3(broken, { method, target, ...(body === undefined ? {} : { body }) })
  const answer = readS3(asked).then(
    ({ code }) => code,
    (error) => String(error.code ?? error),
  )
  return Promise.race([answer, Bun.sleep(300).then(() => 'nothing')])
}

const writes: Readonly<Partial<Record<FaultName, readonly [seen: string, isWritten: boolean]>>> = {
  '500': ['500 InternalError', false],
  '503 SlowDown': ['503 SlowDown', false],
  'reset before': ['ECONNRESET', false],
  'reset mid-request-body': ['ECONNRESET', false],
  'timeout before effect': ['nothing', false],
  '500 after effect': ['500 InternalError', true],
  'reset after effect': ['ECONNRESET', true],
  'timeout after effect': ['nothing', true],
}

for (const [fault, [seen, isWritten]] of Object.entries(writes))
  test(`${fault}: the client sees ${seen}, and the object is ${isWritten ? '' : 'not '}there`, async () => {
    const name = fault.replaceAll(' ', '-')
    const { hits } = proxy.inject({ operation: 'PutObject', fault: fault as FaultName, occurrence: 1 })
    expect(await outcome('PUT', name, 'x'.repeat(100_000))).toBe(seen)
    expect([stub.objects().has(name), hits()]).toEqual([isWritten, 1])
    expect(await outcome('PUT', name, 'again')).toBe('200')
    expect([stub.objects().has(name), hits()]).toEqual([true, 1])
  })

/** How much of the body crosses the socket. */
async function receivedBytes(name: string): Promise<number> {
  const target = `/${stub.bucket}/${name}`
  const headers = await signHeaders({ method: 'GET', url: proxy.url + target, region: stub.region }, stub)
  const lines = Object.entries({ ...headers, connection: 'close' }).map(([header, value]) => `${header}: ${value}\r\n`)
  const { text } = await sendRaw(Number(new URL(proxy.url).port), `GET ${target} HTTP/1.1\r\n${lines.join('')}\r\n`)
  return text.length - text.indexOf('\r\n\r\n') - 4
}

test('an answer breaks off after the given number of bytes, or after half of the body', async () => {
  stub.plant('halves', generatedBytes(100_000, 7))
  expect(await receivedBytes('halves')).toBe(100_000)
  for (const fault of ['reset mid-response-body', 'end mid-response-body'] as const) {
    proxy.clear()
    const { hits } = proxy.inject({ operation: 'GetObject', fault, afterBytes: 1_000, occurrence: 1 })
    proxy.inject({ operation: 'GetObject', fault })
    expect([await receivedBytes('halves'), await receivedBytes('halves'), hits()]).toEqual([1_000, 50_000, 1])
  }
})

for (const [fault, isJoined] of [
  ['200 with error', false],
  ['200 with error after effect', true],
] as const)
  test(`${fault}: the parts are ${isJoined ? '' : 'not '}joined`, async () => {
    const name = `joined-${isJoined}`
    const begun = await readS3(askS3(broken, { method: 'POST', target: `${name}?uploads` }))
    const id = encodeURIComponent(xmlField(begun.text, 'UploadId') ?? '')
    const part = await askS3(broken, { method: 'PUT', target: `${name}?partNumber=1&uploadId=${id}`, body: 'whole' })
    const item = `<Part><PartNumber>1</PartNumber><ETag>${part.headers.get('etag')}</ETag></Part>`
    const { hits } = proxy.inject({ fault })
    const body = `<CompleteMultipartUpload>${item}</CompleteMultipartUpload>`
    expect(await outcome('POST', `${name}?uploadId=${id}`, body)).toBe('200 InternalError')
    expect([stub.objects().has(name), hits()]).toEqual([isJoined, 1])
  })

test('an answer has a wrong ETag, a wrong size, or comes slowly', async () => {
  const rules = [proxy.inject({ fault: 'wrong ETag' }), proxy.inject({ fault: 'wrong size on HEAD' })]
  rules.push(proxy.inject({ operation: 'GetObject', fault: 'slow', drip: { bytes: 100, pauseMs: 5 } }))
  const put = await askS3(broken, { method: 'PUT', target: 'odd', body: 'x'.repeat(400) })
  const head = await askS3(broken, { method: 'HEAD', target: 'odd' })
  const pieces: number[] = []
  for await (const chunk of (await askS3(broken, { method: 'GET', target: 'odd' })).body ?? [])
    pieces.push(chunk.length)
  expect([put.headers.get('etag'), head.headers.get('content-length')]).toEqual([`"${'0badf00d'.repeat(4)}"`, '401'])
  expect(pieces.reduce((sum, length) => sum + length, 0)).toBe(400)
  expect(pieces.length).toBeGreaterThan(1)
  expect(rules.map(({ hits }) => hits())).toEqual([1, 1, 1])
})

test('rules count the requests that they are about, and large bodies pass whole', async () => {
  const bytes = generatedBytes(9 * 1_024 * 1_024, 7)
  const rule = proxy.inject({ operation: ['HeadObject', 'GetObject'], fault: '500', occurrence: [2, 3] })
  const other = proxy.inject({ matches: ({ name }) => name === 'a b', fault: '503 SlowDown', retryAfterSeconds: 7 })
  await askS3(broken, { method: 'PUT', target: 'counted', body: bytes })
  const got = await (await askS3(broken, { method: 'GET', target: 'counted' })).bytes()
  expect(sha256Hex(got)).toBe(sha256Hex(bytes))
  const statuses: string[] = []
  for (const method of ['HEAD', 'GET', 'HEAD']) statuses.push((await outcome(method, 'counted')).slice(0, 3))
  expect(statuses).toEqual(['500', '500', '200'])
  expect((await askS3(broken, { method: 'HEAD', target: 'a%20b' })).headers.get('retry-after')).toBe('7')
  expect([rule.hits(), other.hits(), proxy.seen().length]).toEqual([2, 1, 6])
})
