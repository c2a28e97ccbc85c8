import { afterAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { HttpDownloads } from '../../../src/lib/http-downloads.ts'
import { HttpError, ResponseReader } from '../../../src/lib/http-response-reader.ts'
import { errorOf } from '../../support/basics/outcomes.ts'

const downloads = new HttpDownloads(5_000)
afterAll(() => downloads.close())

async function readBody({ read }: { read(): Promise<{ readonly value?: Uint8Array | undefined }> }): Promise<string> {
  let body = ''
  for (let next = await read(); next.value !== undefined; next = await read())
    body += Buffer.from(next.value).toString()
  return body
}

/** A response, its body, and whether the body is complete and the connection can carry another request. */
const responses = [
  ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', 'hello', true, true],
  ['HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello', 'hello', false, false],
  ['HTTP/1.1 206 \r\ncontent-length:5\r\nConnection: Close\r\n\r\nhello', 'hello', true, false],
  ['HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', '', true, false],
  ['HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'ok', true, true],
  ['HTTP/1.1 304 Not Modified\r\n\r\n', '', true, true],
  [
    'HTTP/1.1 403 \r\nTransfer-Encoding: chunked\r\n\r\n3\r\n<Er\r\nA;x=y\r\nror></Erro\r\n0\r\nX: y\r\n\r\n',
    '<Error></Erro',
    true,
    true,
  ],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n', 'abc', false, false],
  ['HTTP/1.1 200 OK\r\n\r\nuntil the end', 'until the end', false, false],
] as const

test.each(responses)('a response is read the same in pieces of any size: %j', (text, body, isComplete, isReusable) => {
  for (const size of [1, 2, 3, 7, text.length]) {
    const reader = new ResponseReader()
    let received = ''
    for (let at = 0; at < text.length; at += size) {
      for (const piece of reader.push(Buffer.from(text.slice(at, at + size)))) received += Buffer.from(piece).toString()
    }
    expect([received, reader.isComplete, reader.isReusable]).toEqual([body, isComplete, isReusable])
    reader.end()
    expect(reader.isComplete).toBe(isComplete || body.startsWith('until'))
  }
})

test.each([
  'SSH-2.0-x\r\n\r\n',
  'HTTP/2 200\r\n\r\n',
  'HTTP/1.1 200 OK\r\nno colon\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab',
  'HTTP/1.1 204 No Content\r\n\r\na',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nmore',
  `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}`,
])('bytes that are not a valid response are rejected', (text) => {
  expect(() => new ResponseReader().push(Buffer.from(text))).toThrow(HttpError)
})

/** Answers the first request of a connection, and closes it at the second one without an answer. */
function startForgetfulServer() {
  let connections = 0
  const listener = Bun.listen<{ requests: number }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        connections += 1
        socket.data = { requests: 0 }
      },
      data(socket) {
        socket.data.requests += 1
        if (socket.data.requests === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        else socket.end()
      },
    },
  })
  return { url: `http://127.0.0.1:${listener.port}/x`, connections: () => connections, stop: () => listener.stop(true) }
}

test('an idle connection that the server closes is replaced, and an aborted signal of an old request ends no other', async () => {
  const server = startForgetfulServer()
  const first = new AbortController()
  expect(await readBody(await downloads.get(server.url, { host: 'x' }, first.signal))).toBe('ok')
  const second = downloads.get(server.url, { host: 'x' }, new AbortController().signal)
  first.abort()
  expect(await readBody(await second)).toBe('ok')
  expect(server.connections()).toBe(2)
  expect(await errorOf(downloads.get(server.url, { 'x-a': 'b\r\nc: d' }, first.signal))).toBeInstanceOf(TypeError)
  server.stop()
  expect(await errorOf(downloads.get(server.url, {}, new AbortController().signal))).toMatchObject({
    code: 'ECONNREFUSED',
  })
})

test.each([
  ['localhost', 'tls-authority.pem', 'hello'],
  ['localhost', undefined, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  ['127.0.0.1', 'tls-authority.pem', 'ERR_TLS_CERT_ALTNAME_INVALID'],
])('an encrypted connection to %s, with the authority %s, gives %s', async (host, authority, outcome) => {
  const pem = Bun.file(join(import.meta.dir, 'tls-server.pem'))
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls: { cert: pem, key: pem },
    fetch: () => new Response('hello'),
  })
  const script = `
    import { HttpDownloads } from '${join(import.meta.dir, '../../../src/lib/http-downloads.ts')}'
    const get = new HttpDownloads(1).get('https://${host}:${server.port}/', { host: 'x' }, AbortSignal.timeout(10_000))
    console.log(await get.then(async ({ read }) => Buffer.from((await read()).value).toString(), ({ code }) => code))`
  const env = authority === undefined ? {} : { NODE_EXTRA_CA_CERTS: join(import.meta.dir, authority) }
  const child = Bun.spawn([process.execPath, '-e', script], {
    env: { PATH: process.env['PATH'], ...env },
    stderr: 'inherit',
  })
  expect((await child.stdout.text()).trim()).toBe(outcome)
  await server.stop(true)
})
