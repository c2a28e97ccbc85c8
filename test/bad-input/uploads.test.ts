import { describe, expect, test } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { sendRaw } from '../support/clients/raw-socket.ts'
import { GuardedServer, repository, verdictOfRaw } from '../support/server/guarded-server.ts'

const guard = new GuardedServer()

interface Chunk {
  readonly range?: string
  readonly length?: number | 'chunked'
  readonly body: string
}

/** A chunk by hand, so that what it says of itself can be wrong. */
function request(method: string, target: string, { range, length, body }: Chunk): string {
  const size = body.length.toString(16)
  const lines = [
    'Connection: close',
    ...(range === undefined ? [] : [`Content-Range: ${range}`]),
    length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length ?? body.length}`,
  ]
  return guard.request(method, target, lines, length === 'chunked' ? `${size}\r\n${body}\r\n0\r\n\r\n` : body)
}

async function send(method: string, target: string, chunk: Chunk): Promise<string> {
  return verdictOfRaw(await sendRaw(guard.port, request(method, target, chunk)))
}

describe('a chunk that is not what it says', () => {
  const cases: readonly (readonly [string, Chunk, string])[] = [
    ['is longer than its range', { range: '0-1', body: 'abc' }, '400 SIZE_INVALID'],
    ['is shorter than its range', { range: '0-4', body: 'abc' }, '400 SIZE_INVALID'],
    ['is longer than its range, sent in chunks', { range: '0-1', body: 'abc', length: 'chunked' }, '400 SIZE_INVALID'],
    ['is shorter than its range, sent in chunks', { range: '0-4', body: 'abc', length: 'chunked' }, '400 SIZE_INVALID'],
    ['has a range and no bytes', { range: '0-0', body: '' }, '400 SIZE_INVALID'],
    ['has a range beyond counting', { range: '0-9007199254740992', body: 'abc' }, '400 BLOB_UPLOAD_INVALID'],
    ['has a range that ends before it begins', { range: '2-0', body: 'abc' }, '400 BLOB_UPLOAD_INVALID'],
    ['has a range in the form of answers', { range: 'bytes 0-2/3', body: 'abc' }, '400 BLOB_UPLOAD_INVALID'],
    ['has a range in the form of requests', { range: 'bytes=0-2', body: 'abc' }, '400 BLOB_UPLOAD_INVALID'],
    ['has half a range', { range: '0-', body: 'abc' }, '400 BLOB_UPLOAD_INVALID'],
    ['has an empty range', { range: '', body: 'abc' }, '400 BLOB_UPLOAD_INVALID'],
    ['begins behind the end', { range: '1-3', body: 'abc' }, '416 BLOB_UPLOAD_INVALID'],
    [
      'begins far behind the end',
      { range: '9007199254740989-9007199254740991', body: 'abc' },
      '416 BLOB_UPLOAD_INVALID',
    ],
  ]
  test.each(cases)('and %s is refused, and nothing of it stays', async (_what, chunk, expected) => {
    for (const method of ['PATCH', 'PUT']) {
      const upload = await guard.startUpload()
      const target = method === 'PUT' ? `${upload}?digest=${digestOf(chunk.body)}` : upload
      expect([method, await send(method, target, chunk)]).toEqual([method, expected])
      expect(await guard.receivedRange(upload)).toBe('0-0')

      expect(await send('PATCH', upload, { range: '0-2', body: 'abc' })).toBe('202')
      expect(await guard.receivedRange(upload)).toBe('0-2')
    }
  })

  test('and has a length that is not that of its range is refused before a byte of it is sent', async () => {
    const upload = await guard.startUpload()
    for (const length of [1, 5]) {
      expect(await send('PATCH', upload, { range: '0-2', length, body: '' })).toBe('400 SIZE_INVALID')
    }
    expect(await guard.receivedRange(upload)).toBe('0-0')
  })
})

describe('an encoded body', () => {
  test.each(['gzip', 'GZIP', 'zstd', 'deflate', 'br', 'compress', 'identity, gzip', 'x', 'aws-chunked'])(
    '(%p) is not taken: bytes in are bytes out',
    async (encoding) => {
      const upload = await guard.startUpload()
      const headers = { 'content-encoding': encoding }
      const digest = digestOf('abc')
      const answers = await Promise.all([
        guard.fetch(upload, { method: 'PATCH', body: 'abc', headers }),
        guard.fetch(`/v2/${repository}/blobs/uploads/?digest=${digest}`, { method: 'POST', body: 'abc', headers }),
        guard.fetch(`/v2/${repository}/manifests/encoded`, {
          method: 'PUT',
          body: '{}',
          headers: { ...headers, 'content-type': 'application/vnd.oci.image.manifest.v1+json' },
        }),
      ])
      expect(answers.map(({ status }) => status)).toEqual([415, 415, 415])
      expect(await guard.receivedRange(upload)).toBe('0-0')
    },
  )

  test('that says it is not encoded is accepted', async () => {
    const headers = { 'content-encoding': 'identity' }
    const answer = await guard.fetch(await guard.startUpload(), { method: 'PATCH', body: 'abc', headers })
    expect(answer.status).toBe(202)
  })
})

guard.losesNothing()
