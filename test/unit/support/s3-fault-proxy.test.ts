// Each fault of the proxy is seen by a client, and by the server behind it or not, as its name says.
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { generatedBytes } from '../../support/basics/generated-bytes.ts'
import { sendRaw } from '../../support/clients/raw-socket.ts'
import { askS3, readS3, type S3Request, xmlField } from '../../support/s3/s3-server.ts'
import { sha256Hex, signHeaders } from '../../support/s3/s3-signature.ts'
import { startS3Stub } from '../../support/s3/s3-stub.ts'
import { startS3FaultProxy } from '../../support/s3-faults/s3-fault-proxy.ts'

const stub = startS3Stub({ partBytesMin: 4 })
const proxy = await startS3FaultProxy(stub.url)
const broken = { ...stub, url: proxy.url }
afterAll(async () => {
  await proxy.stop()
  await stub.stop()
})
afterEach(() => proxy.clear())

type Rest = Omit<S3Request, 'method' | 'target'>

/** What a client makes of it: the status and the code, or the words of its error. */
async function outcome(method: string, target: string, rest: Rest = {}): Promise<string> {
  try {
    return (await readS3(askS3(broken, { method, target, ...rest }))).code
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
}

/** Whether the answer stays away for as long as the test wants to wait. */
async function isUnanswered(method: string, target: string, body: string): Promise<boolean> {
  const url = `${proxy.url}/${stub.bucket}/${target}`
  const headers = signHeaders({ method, url, region: stub.region, body }, stub)
  const answer = await fetch(url, { method, headers, body, signal: AbortSignal.timeout(300) }).catch((error) => error)
  return answer instanceof Error && answer.name === 'TimeoutError'
}

async function createUpload(name: string): Promise<string> {
  const begun = await askS3(stub, { method: 'POST', target: `${name}?uploads` })
  const id = encodeURIComponent(xmlField(await begun.text(), 'UploadId') ?? '')
  await askS3(stub, { method: 'PUT', target: `${name}?partNumber=1&uploadId=${id}`, body: 'whole' })
  return id
}

const bodyOfComplete = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"${new Bun.CryptoHasher('md5')
  .update('whole')
  .digest('hex')}"</ETag></Part></CompleteMultipartUpload>`

const reset = 'ECONNRESET'

describe('with no rule', () => {
  test('bytes go through unchanged in both directions, chunks and keep-alive included', async () => {
    const heard: Buffer[] = []
    const answers = [
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Fine\r\nx-ODD:  spaced \r\nContent-Length: 3\r\n\r\n\x00\xffz',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n0\r\nTrailer: t\r\n\r\n',
      'HTTP/1.1 204 No Content\r\n\r\n',
    ].map((text) => Buffer.from(text, 'latin1'))
    let turn = 0
    const server = createServer((socket) => {
      const answer = answers[turn++] ?? Buffer.alloc(0)
      socket.on('data', (bytes) => {
        heard.push(Buffer.from(bytes))
        if (bytes.includes('END') || bytes.includes('HEAD')) socket.write(answer)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const between = await startS3FaultProxy(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`)
    const requests = [
      'PUT /b/%61?q=%zz HTTP/1.1\r\nHost: Some.Where:1\r\nx-a:  B \r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n\x00\xffEND',
      'POST /b HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nEND\r\n0\r\n\r\n',
      'HEAD /b HTTP/1.1\r\nhost: x\r\nConnection: close\r\n\r\n',
    ].map((text) => Buffer.from(text, 'latin1'))
    const pieces = requests.flatMap((request, at) => [request, ...['z', 'Trailer: t\r\n\r\n'].slice(at, at + 1)])
    const waiting = pieces.map((piece) => (typeof piece === 'string' ? { waitFor: piece } : piece))
    const { text } = await sendRaw(Number(new URL(between.url).port), ...waiting)
    await between.stop()
    server.close()
    expect(text).toBe(Buffer.concat(answers).toString('latin1'))
    expect(Buffer.concat(heard).toString('latin1')).toBe(Buffer.concat(requests).toString('latin1'))
  })

  test('signatures hold, and large bodies arrive whole', async () => {
    const bytes = generatedBytes(9 * 1_024 * 1_024, 7)
    const put = await askS3(broken, { method: 'PUT', target: 'large', body: bytes })
    const got = await (await askS3(broken, { method: 'GET', target: 'large' })).bytes()
    expect([put.status, sha256Hex(got)]).toEqual([200, sha256Hex(bytes)])
    expect(await outcome('HEAD', 'large')).toBe('200')
    expect(await outcome('GET', 'absent')).toBe('404 NoSuchKey')
    expect(proxy.seen()).toEqual(['PutObject', 'GetObject', 'HeadObject', 'GetObject'])
  })
})

describe('a fault before the effect', () => {
  const faults = [
    ['500', '500 InternalError'],
    ['503 SlowDown', '503 SlowDown'],
    ['reset before', reset],
    ['reset mid-request-body', reset],
  ] as const
  for (const [fault, seen] of faults) {
    test(`${fault}: the client sees it, and nothing was written`, async () => {
      const name = `before ${fault}`.replaceAll(' ', '-')
      const { hits } = proxy.inject({ operation: 'PutObject', fault, occurrence: 1 })
      expect(await outcome('PUT', name, { body: 'x'.repeat(100_000) })).toBe(seen)
      expect(stub.objects().has(name)).toBe(false)
      expect(hits()).toBe(1)
      expect(await outcome('PUT', name, { body: 'again' })).toBe('200')
      expect([stub.objects().has(name), hits()]).toEqual([true, 1])
    })
  }

  test('a timeout: the client gets no answer, and nothing was written', async () => {
    const { hits } = proxy.inject({ operation: 'PutObject', fault: 'timeout before effect' })
    expect(await isUnanswered('PUT', 'never', 'x')).toBe(true)
    expect([stub.objects().has('never'), hits()]).toEqual([false, 1])
  })

  test('503 says when to come back, where it is told to', async () => {
    proxy.inject({ operation: 'HeadObject', fault: '503 SlowDown', retryAfterSeconds: 7 })
    const answer = await askS3(broken, { method: 'HEAD', target: 'any' })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '7'])
  })
})

describe('a fault after the effect', () => {
  const faults = [
    ['500 after effect', '500 InternalError'],
    ['reset after effect', reset],
  ] as const
  for (const [fault, seen] of faults) {
    test(`${fault}: the client sees it, and the object is there`, async () => {
      const name = `after ${fault}`.replaceAll(' ', '-')
      const { hits } = proxy.inject({ operation: 'PutObject', fault })
      expect(await outcome('PUT', name, { body: 'x' })).toBe(seen)
      expect([stub.objects().has(name), hits()]).toEqual([true, 1])
    })
  }

  test('a timeout: the client gets no answer, and the object is there', async () => {
    const { hits } = proxy.inject({ operation: 'PutObject', fault: 'timeout after effect' })
    expect(await isUnanswered('PUT', 'late', 'x')).toBe(true)
    expect([stub.objects().has('late'), hits()]).toEqual([true, 1])
  })
})

describe('an answer that breaks off', () => {
  const bytes = generatedBytes(100_000, 7)

  /** What comes of the body before the end, and the end. */
  async function readBroken(): Promise<[number, string]> {
    const answer = await askS3(broken, { method: 'GET', target: 'halves' })
    let received = 0
    try {
      for await (const chunk of answer.body ?? []) received += chunk.length
      return [received, 'done']
    } catch (error) {
      return [received, error instanceof Error && 'code' in error ? String(error.code) : 'other']
    }
  }

  test('control: whole without a rule', async () => {
    stub.plant('halves', bytes)
    expect(await readBroken()).toEqual([100_000, 'done'])
  })

  for (const fault of ['reset mid-response-body', 'end mid-response-body'] as const) {
    test(`${fault}: after so many bytes`, async () => {
      stub.plant('halves', bytes)
      const { hits } = proxy.inject({ operation: 'GetObject', fault, afterBytes: 1_000 })
      expect(await readRaw('halves')).toBe(1_000)
      const [received, end] = await readBroken()
      expect(received).toBeLessThanOrEqual(1_000)
      expect(end).not.toBe('done')
      expect(hits()).toBe(2)
    })

    test(`${fault}: after half of the body where nothing is said`, async () => {
      stub.plant('halves', bytes)
      proxy.inject({ operation: 'GetObject', fault })
      expect(await readRaw('halves')).toBe(50_000)
    })
  }

  /** How much of the body crosses the socket. */
  async function readRaw(name: string): Promise<number> {
    const url = `${proxy.url}/${stub.bucket}/${name}`
    const headers = Object.entries(signHeaders({ method: 'GET', url, region: stub.region }, stub))
    const lines = headers.map(([header, value]) => `${header}: ${value}\r\n`).join('')
    const { text } = await sendRaw(Number(new URL(url).port), `GET /${stub.bucket}/${name} HTTP/1.1\r\n${lines}\r\n`)
    return text.length - text.indexOf('\r\n\r\n') - 4
  }
})

describe('an answer with wrong contents', () => {
  test('200 with an error, and nothing was joined', async () => {
    const id = await createUpload('not-joined')
    const { hits } = proxy.inject({ operation: 'CompleteMultipartUpload', fault: '200 with error', occurrence: 1 })
    const request = () => outcome('POST', `not-joined?uploadId=${id}`, { body: bodyOfComplete })
    expect(await request()).toBe('200 InternalError')
    expect([stub.objects().has('not-joined'), hits()]).toEqual([false, 1])
    expect(await request()).toBe('200')
    expect(stub.objects().has('not-joined')).toBe(true)
  })

  test('200 with an error, though the parts were joined', async () => {
    const id = await createUpload('joined')
    proxy.inject({ operation: 'CompleteMultipartUpload', fault: '200 with error after effect' })
    expect(await outcome('POST', `joined?uploadId=${id}`, { body: bodyOfComplete })).toBe('200 InternalError')
    expect(stub.objects().has('joined')).toBe(true)
  })

  test('with a wrong ETag', async () => {
    proxy.inject({ operation: 'UploadPart', fault: 'wrong ETag' })
    const id = await createUpload('tagged')
    const part = await askS3(broken, { method: 'PUT', target: `tagged?partNumber=2&uploadId=${id}`, body: 'part' })
    expect([part.status, part.headers.get('etag')]).toEqual([200, `"${'0badf00d'.repeat(4)}"`])
  })

  test('with a wrong size', async () => {
    stub.plant('sized', new Uint8Array(99))
    const head = () => askS3(broken, { method: 'HEAD', target: 'sized' })
    expect((await head()).headers.get('content-length')).toBe('99')
    proxy.inject({ fault: 'wrong size on HEAD' })
    expect((await head()).headers.get('content-length')).toBe('100')
  })

  test('slowly, and whole at last', async () => {
    stub.plant('dripping', generatedBytes(400, 7))
    const { hits } = proxy.inject({ operation: 'GetObject', fault: 'slow', drip: { bytes: 100, pauseMs: 5 } })
    const answer = await askS3(broken, { method: 'GET', target: 'dripping' })
    const pieces: number[] = []
    for await (const chunk of answer.body ?? []) pieces.push(chunk.length)
    expect(pieces.reduce((sum, length) => sum + length, 0)).toBe(400)
    expect(pieces.length).toBeGreaterThan(1)
    expect(hits()).toBe(1)
  })
})

describe('rules', () => {
  test('count the requests that they are about, and break those whose turn it is', async () => {
    const { hits } = proxy.inject({ operation: ['HeadObject', 'GetObject'], fault: '500', occurrence: [2, 3] })
    stub.plant('counted', new Uint8Array(1))
    const statuses: string[] = []
    for (const method of ['GET', 'PUT', 'HEAD', 'GET', 'HEAD']) statuses.push(await outcome(method, 'counted'))
    expect(statuses.map((text) => text.slice(0, 3))).toEqual(['200', '200', '500', '500', '200'])
    expect(hits()).toBe(2)
  })

  test('may look at the request themselves', async () => {
    proxy.inject({ matches: ({ name, query }) => name === 'a b' && query.get('x-id') === '1', fault: '500' })
    stub.plant('a b', new Uint8Array(1))
    expect(await outcome('GET', 'a%20b?x-id=1')).toBe('500 InternalError')
    expect(await outcome('GET', 'a%20b?x-id=2')).toBe('200')
    expect(await outcome('HEAD', 'a%20b')).toBe('200')
  })

  test('are not about requests that their fault has no meaning for', async () => {
    const rules = (['200 with error', 'wrong ETag', 'wrong size on HEAD', 'reset mid-request-body'] as const).map(
      (fault) => proxy.inject({ fault }),
    )
    stub.plant('plain', new Uint8Array(1))
    expect(await outcome('GET', 'plain')).toBe('200')
    expect(rules.map(({ hits }) => hits())).toEqual([0, 0, 0, 0])
  })

  test('are forgotten, and every operation is seen by its name', async () => {
    proxy.inject({ fault: '500' })
    expect(await outcome('GET', 'plain')).toBe('500 InternalError')
    proxy.clear()
    const calls = [
      ['PUT', 'o', 'PutObject'],
      ['GET', 'o', 'GetObject'],
      ['HEAD', 'o', 'HeadObject'],
      ['DELETE', 'o', 'DeleteObject'],
      ['POST', 'o?uploads', 'CreateMultipartUpload'],
      ['PUT', 'o?partNumber=1&uploadId=x', 'UploadPart'],
      ['POST', 'o?uploadId=x', 'CompleteMultipartUpload'],
      ['DELETE', 'o?uploadId=x', 'AbortMultipartUpload'],
      ['GET', 'o?uploadId=x', 'ListParts'],
      ['GET', '?uploads', 'ListMultipartUploads'],
      ['GET', '?list-type=2', 'ListObjects'],
      ['HEAD', '', 'HeadBucket'],
    ] as const
    for (const [method, target] of calls) {
      const body = method === 'PUT' || method === 'POST' ? { body: 'x' } : {}
      expect(await outcome(method, target, body)).not.toStartWith('5')
    }
    expect(proxy.seen()).toEqual(calls.map(([, , operation]) => operation))
  })

  test('an end of the server itself is a reset too', async () => {
    const alone = await startS3FaultProxy('http://127.0.0.1:9')
    const answer = await fetch(alone.url).catch((error) => error.code)
    await alone.stop()
    expect(answer).toBe(reset)
  })
})
