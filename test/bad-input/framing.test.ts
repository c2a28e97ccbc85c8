// Where one request ends and the next begins. Two readers that disagree about it can be made to see requests that the
// other did not (smuggling), so anything but the plain forms is refused, and the connection with it.
import { describe, expect, test } from 'bun:test'
import { sendRaw } from '../support/clients/raw-socket.ts'
import { authorization, GuardedServer, manifestDigest, repository } from '../support/server/guarded-server.ts'

const guard = new GuardedServer()
const uploads = `/v2/${repository}/blobs/uploads/`
const chunkedBody = '3\r\nabc\r\n0\r\n\r\n'

/** What an attacker would like to be seen as a request of its own. */
function hidden(): string {
  return guard.request('DELETE', `/v2/${repository}/manifests/${manifestDigest}`, ['Connection: close'])
}

/** An empty answer, or refusals alone: and after one of them, nothing more of the connection is looked at. */
async function expectRefused(...pieces: readonly string[]): Promise<void> {
  const { statuses } = await sendRaw(guard.port, ...pieces)
  expect(statuses.length).toBeLessThan(2)
  for (const status of statuses) expect([400, 431, 501, 505]).toContain(status)
}

describe('a body whose length is told in two ways', () => {
  test.each([
    ['Content-Length before Transfer-Encoding', ['Content-Length: 3', 'Transfer-Encoding: chunked']],
    ['Transfer-Encoding before Content-Length', ['Transfer-Encoding: chunked', 'Content-Length: 3']],
    ['Content-Length of nothing and Transfer-Encoding', ['Content-Length: 0', 'Transfer-Encoding: chunked']],
    ['an encoding that looks like chunked', ['Transfer-Encoding: xchunked']],
    ['an encoding with a vertical tab', ['Transfer-Encoding: \x0bchunked']],
    ['an encoding in quotes', ['Transfer-Encoding: "chunked"']],
    ['chunked, and then another', ['Transfer-Encoding: chunked, identity']],
    ['another, and then chunked', ['Transfer-Encoding: gzip, chunked']],
    ['two encodings in two lines', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity']],
    ['identity', ['Transfer-Encoding: identity', 'Content-Length: 3']],
    ['a space before the colon', ['Transfer-Encoding : chunked', 'Content-Length: 3']],
    ['a tab before the colon', ['Transfer-Encoding\t: chunked', 'Content-Length: 3']],
    ['a folded line', ['Transfer-Encoding:\r\n chunked', 'Content-Length: 3']],
    ['a line that ends in LF', ['X: y\nTransfer-Encoding: chunked', 'Content-Length: 3']],
    ['a line that ends in CR', ['X: y\rTransfer-Encoding: chunked', 'Content-Length: 3']],
    [
      'a name with an underscore is another name',
      ['Transfer_Encoding: chunked', 'Transfer-Encoding: chunked', 'Content-Length: 3'],
    ],
  ])('by %s is refused', async (_what, lines) => {
    await expectRefused(guard.request('POST', uploads, lines, chunkedBody) + hidden())
  })
})

describe('a chunked body that is not well formed', () => {
  test.each([
    ['a size with a prefix', '0x3\r\nabc\r\n0\r\n\r\n'],
    ['a size below nothing', '-3\r\nabc\r\n0\r\n\r\n'],
    ['a size with a sign', '+3\r\nabc\r\n0\r\n\r\n'],
    ['a size beyond counting', 'ffffffffffffffff3\r\nabc\r\n0\r\n\r\n'],
    ['a size that is no number', 'three\r\nabc\r\n0\r\n\r\n'],
    ['no size', '\r\nabc\r\n0\r\n\r\n'],
    ['lines that end in LF', '3\nabc\n0\n\n'],
    ['more bytes than its size', '3\r\nabcdef\r\n0\r\n\r\n'],
  ])('with %s is refused, and nothing behind it is a request', async (_what, body) => {
    const digest = `sha256:${Bun.CryptoHasher.hash('sha256', 'abc', 'hex')}`
    const target = `/v2/kept/chunked/blobs/uploads/?digest=${digest}`
    const { statuses } = await sendRaw(
      guard.port,
      guard.request('POST', target, ['Transfer-Encoding: chunked'], body) + hidden(),
    )
    expect(statuses.filter((status) => status < 400)).toEqual([])
    expect(statuses).not.toContain(405)
  })

  // RFC 9112 lets trailers be dropped; Bun 1.4.5 refuses them. No client of a registry sends any.
  test('with trailers is taken or refused, and the trailers are no request and no header', async () => {
    for (const trailer of ['X-Checksum: 5\r\n', 'Content-Length: 5\r\n', 'Authorization: x\r\n']) {
      const upload = await guard.startUpload()
      const body = `3\r\nabc\r\n0\r\n${trailer}\r\n`
      const request = guard.request('PATCH', upload, ['Transfer-Encoding: chunked', 'Connection: close'], body)
      const { statuses } = await sendRaw(guard.port, request)
      expect(statuses.filter((status) => status !== 202 && status !== 400)).toEqual([])
      expect(['0-0', '0-2']).toContain((await guard.receivedRange(upload)) ?? '')
    }
  })

  test('with a request in place of its last line is not read on', async () => {
    const upload = await guard.startUpload()
    const request = guard.request('PATCH', upload, ['Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\n')
    const { statuses } = await sendRaw(guard.port, request + hidden())
    expect(statuses.slice(1).filter((status) => status < 400)).toEqual([])
  })
})

describe('a block of headers that is not well formed', () => {
  test.each([
    ['a name with a space', 'X Y: z'],
    ['a space before the colon', 'X : z'],
    ['no name', ': z'],
    ['no colon', 'X'],
    ['a NUL in its value', 'X: a\0b'],
    ['a CR in its value', 'X: a\rb'],
    ['a control character in its name', 'X\x01: a'],
    ['letters beyond ASCII in its name', 'X\xe9: a'],
    ['a line that continues', 'X: a\r\n b'],
    ['a line that begins with a space', ' X: a'],
    ['a line that ends in LF', 'X: a\nY: b'],
  ])('with %s is refused', async (_what, line) => {
    await expectRefused(guard.request('GET', '/v2/_catalog', [line]) + hidden())
  })

  test('whose lines all end in LF is refused', async () => {
    await expectRefused(guard.request('GET', '/v2/_catalog').replaceAll('\r\n', '\n') + hidden())
  })
})

describe('requests one behind the other', () => {
  test('are answered each, in their order, on one connection', async () => {
    const first = guard.request('GET', `/v2/${repository}/manifests/kept`)
    const second = guard.request('GET', '/v2/_catalog?n=1')
    const third = guard.request('HEAD', '/v2/', ['Connection: close'])
    const { answers } = await sendRaw(guard.port, first + second + third)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(answers[0]?.headers.get('docker-content-digest')).toBe(manifestDigest)
    expect(answers[1]?.body).toContain(repository)
  })

  test('a hundred at once are answered a hundred times', async () => {
    const one = guard.request('GET', '/v2/_catalog')
    const { statuses } = await sendRaw(guard.port, one.repeat(99) + guard.request('GET', '/v2/', ['Connection: close']))
    expect(statuses).toEqual(Array.from({ length: 100 }, () => 200))
  })

  test('credentials of one are not those of the next', async () => {
    const unauthorized = 'GET /v2/_catalog HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'
    const { statuses } = await sendRaw(guard.port, guard.request('GET', '/v2/_catalog') + unauthorized)
    expect(statuses).toEqual([200, 401])
  })

  test('sent letter by letter are the same requests', async () => {
    const letters = [...guard.request('GET', '/v2/_catalog', ['Connection: close'])]
    expect((await sendRaw(guard.port, ...letters)).statuses).toEqual([200])
  })
})

describe('a body where none is expected', () => {
  const last = () => guard.request('GET', '/v2/_catalog', ['Connection: close'])

  test.each(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'])(
    'of %s is no request of its own',
    async (method) => {
      const inner = hidden()
      for (const framed of [
        [`Content-Length: ${inner.length}`, inner],
        ['Transfer-Encoding: chunked', `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`],
      ] as const) {
        const outer = guard.request(method, '/v2/', [framed[0]], framed[1])
        const { statuses } = await sendRaw(guard.port, outer + last())
        expect(statuses.length).toBeLessThanOrEqual(2)
        expect(statuses).not.toContain(202)
      }
    },
  )

  test('of GET is read past: old clients send one', async () => {
    const { statuses } = await sendRaw(guard.port, guard.request('GET', '/v2/', ['Content-Length: 3'], 'abc') + last())
    expect(statuses).toEqual([200, 200])
  })

  // The body never comes: an answer that waits for it, or a connection that stays open for it, would end the test late.
  test.each(['GET', 'HEAD', 'DELETE', 'PUT'])(
    'of a refused %s is not read, and the connection ends',
    async (method) => {
      for (const line of ['Content-Length: 300000000', 'Transfer-Encoding: chunked']) {
        const head = guard.request(method, '/v2/_catalog', [line]).replace(authorization, 'X: y')
        const { answers } = await sendRaw(guard.port, head)
        expect(answers.map(({ status }) => status)).toEqual([401])
        expect(answers[0]?.headers.get('connection')).toBe('close')
      }
    },
  )

  test('of a refused request is no request of its own, read or not', async () => {
    const inner = hidden()
    const lines = [`Content-Length: ${inner.length}`]
    for (const target of ['/v2/Bad/blobs/uploads/', '/v2/', '/nowhere', `/v2/${repository}/manifests/x`]) {
      const { statuses } = await sendRaw(guard.port, guard.request('PUT', target, lines, inner) + last())
      expect(statuses[0]).toBeWithin(400, 500)
      expect(statuses.slice(1).filter((status) => status !== 200)).toEqual([])
    }
  })
})

describe('Expect: 100-continue', () => {
  const expecting = (length: number) => [`Content-Length: ${length}`, 'Expect: 100-continue', 'Connection: close']

  test('is told to go on, and the body is taken', async () => {
    const upload = await guard.startUpload()
    const head = guard.request('PATCH', upload, expecting(3))
    const { statuses } = await sendRaw(guard.port, head, { waitFor: '100 Continue' }, 'abc')
    expect(statuses).toEqual([100, 202])
    expect(await guard.receivedRange(upload)).toBe('0-2')
  })

  // Bun writes "100 Continue" itself as soon as it has the headers: nothing of ours can answer first. So what counts is that
  // the body which this invites is not read.
  test('of an anonymous caller ends in 401 and closes the connection without the body', async () => {
    const lines = ['Content-Length: 1000000000', 'Expect: 100-continue']
    const head = guard.request('PATCH', '/v2/kept/app/blobs/uploads/x', lines).replace(`${authorization}\r\n`, '')
    const { statuses } = await sendRaw(guard.port, head)
    expect(statuses).toEqual([100, 401])
  })

  test.each(['200-ok', 'something', '100-continue, x'])('any other expectation (%p) breaks nothing', async (what) => {
    const { statuses } = await guard.ask('GET', '/v2/', [`Expect: ${what}`])
    expect([200, 417]).toContain(statuses.at(-1) ?? 0)
  })
})

describe('an upgrade to another protocol', () => {
  test.each([
    ['HTTP/2', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQ']],
    [
      'WebSocket',
      [
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ],
    ],
    ['TLS', ['Connection: Upgrade', 'Upgrade: TLS/1.2']],
  ])('%s is not made: the request is answered as it is', async (_what, lines) => {
    const request = guard.request('GET', '/v2/_catalog', lines)
    const { statuses } = await sendRaw(
      guard.port,
      request,
      { waitFor: repository },
      guard.request('GET', '/v2/', ['Connection: close']),
    )
    expect(statuses).toEqual([200, 200])
  })
})

// Bun's parser answers before any code of ours runs. The plain answer is what lets a client name the cause: Go programs such
// as docker say "server gave HTTP response to HTTPS client".
test('TLS sent to the plain port gets a plain HTTP answer', async () => {
  const hello = Uint8Array.fromHex(`16030100c8010000c40303${'ab'.repeat(32)}00${'00'.repeat(161)}`)
  const { answers } = await sendRaw(guard.port, hello)
  expect(answers.map(({ status }) => status)).toEqual([400])
  expect(answers[0]?.headers.get('connection')).toBe('close')
})

guard.losesNothing()
