import { describe, expect, test } from 'bun:test'
import { sendRaw } from '../support/clients/raw-socket.ts'
import {
  blobDigest,
  GuardedServer,
  manifestDigest,
  repository,
  verdictOfRaw,
} from '../support/server/guarded-server.ts'

const guard = new GuardedServer()

async function verdict(target: string, method = 'GET'): Promise<string> {
  return verdictOfRaw(await guard.ask(method, target))
}

describe('a path that two readers could read differently', () => {
  test.each([
    ['an encoded slash', `/v2/kept%2Fapp/manifests/kept`],
    ['an encoded slash in small letters', `/v2/kept%2fapp/manifests/kept`],
    ['an encoded slash behind the mount', '/v2/%2fkept/app/manifests/kept'],
    ['an encoded backslash', '/v2/kept%5capp/manifests/kept'],
    ['an encoded NUL', '/v2/kept/app/manifests/kept%00'],
    ['an encoded newline', '/v2/kept/app/manifests/kept%0d%0aX-Injected:%201'],
    ['an encoded tab', '/v2/kept/app/manifests/kept%09'],
    ['an encoded DEL', '/v2/kept/app/manifests/kept%7f'],
    ['a control character of the second set', '/v2/kept/app/manifests/kept%C2%9B'],
    ['two slashes', '/v2/kept//app/manifests/kept'],
    ['two slashes at the end', '/v2/kept/app/manifests//'],
    ['an encoding cut short', '/v2/kept/app/manifests/kept%4'],
    ['an encoding of no number', '/v2/kept/app/manifests/kept%zz'],
    ['an encoding that is no UTF-8', '/v2/kept/app/manifests/kept%ff'],
    ['an overlong slash', '/v2/kept%c0%afapp/manifests/kept'],
  ])('with %s is refused in the form of the registry', async (_what, target) => {
    expect(await verdict(target)).toBe('404 NAME_UNKNOWN')
    expect(await verdict(target, 'PUT')).toBe('400 NAME_INVALID')
  })

  test.each([
    ['two slashes in front', '//v2/kept/app/manifests/kept'],
    ['an encoded slash inside the mount', '/v2%2fkept/app/manifests/kept'],
    ['an encoded dot in a service path', '/api/2023-12-28/stats%00'],
  ])('with %s is refused', async (_what, target) => {
    expect(await verdict(target)).toBe('400')
  })

  test.each([
    ['a semicolon', '/v2/kept/app/manifests/kept;x=1'],
    ['a fragment', '/v2/kept/app/manifests/kept#x'],
    ['a double encoding', '/v2/kept/app/manifests/kept%2565'],
    ['an asterisk', '/v2/kept/app/manifests/*'],
  ])('with %s is no tag', async (_what, target) => {
    expect(await verdict(target)).toBe('404 MANIFEST_UNKNOWN')
    expect(await verdict(target, 'DELETE')).toBe('400 MANIFEST_INVALID')
  })

  test.each([
    ['a slash at the end', '/v2/kept/app/manifests/kept/'],
    ['a slash behind the catalog', '/v2/_catalog/'],
    ['the mount in capitals', '/V2/kept/app/manifests/kept'],
    ['the route in capitals', '/v2/kept/app/Manifests/kept'],
    ['no route', '/v2/kept/app'],
    ['an encoded question mark', '/v2/kept/app/tags/list%3Fn=1'],
  ])('with %s is unknown', async (_what, target) => {
    expect((await verdict(target)).slice(0, 3)).toBe('404')
  })
})

describe('dots and backslashes that the server resolves before it parses the path', () => {
  // Bun resolves them as a browser does. What counts: the same credentials are asked for, and nothing else is reached.
  const targets = [
    '/v2/./kept/app/manifests/kept',
    '/v2/other/../kept/app/manifests/kept',
    '/v2/other/%2e%2e/kept/app/manifests/kept',
    '/v2\\kept\\app/manifests/kept',
    '/../../v2/kept/app/manifests/kept',
    '/healthz/../v2/kept/app/manifests/kept',
    'http://elsewhere.example/v2/kept/app/manifests/kept',
  ]
  test.each(targets)('%p is the resolved path to a known caller', async (target) => {
    const { answers } = await guard.ask('GET', target)
    expect(answers.map(({ status, headers }) => [status, headers.get('docker-content-digest') ?? ''])).toEqual([
      [200, manifestDigest],
    ])
  })

  test.each(targets)('%p is refused to an anonymous caller', async (target) => {
    const request = `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`
    expect((await sendRaw(guard.port, request)).statuses).toEqual([401])
  })

  test.each([
    '/v2/../../../etc/passwd',
    '/..%2f..%2fetc/passwd',
    '/v2/kept/app/blobs/..%2f..%2f..%2fmetadata.sqlite',
    '/data/metadata.sqlite',
  ])('%p leads to no file', async (target) => {
    expect(['400', '404']).toContain((await verdict(target)).slice(0, 3))
  })
})

describe('a request line by hand', () => {
  const send = (line: string, ...lines: string[]) =>
    sendRaw(guard.port, [line, ...lines, 'Connection: close', '', ''].join('\r\n'))

  test.each([
    ['a NUL', 'GET /v2/a\0b HTTP/1.1'],
    ['a tab', 'GET /v2/a\tb HTTP/1.1'],
    ['a control character', 'GET /v2/a\x01b HTTP/1.1'],
    ['two spaces', 'GET  /v2/ HTTP/1.1'],
    ['no version', 'GET /v2/'],
    ['version 0.9', 'GET /v2/ HTTP/0.9'],
    ['version 2.0', 'GET /v2/ HTTP/2.0'],
    ['version 1.9', 'GET /v2/ HTTP/1.9'],
    ['a version in small letters', 'GET /v2/ http/1.1'],
    ['no target', 'GET HTTP/1.1'],
    ['a target without a slash', 'GET v2/ HTTP/1.1'],
    ['an asterisk', 'OPTIONS * HTTP/1.1'],
    ['nothing', ''],
    ['a greeting of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['a greeting of HTTP/2', 'PRI * HTTP/2.0'],
  ])('with %s is refused, and the connection ends', async (_what, line) => {
    const { statuses, answers } = await send(line, 'Host: 127.0.0.1')
    expect(statuses.length).toBeLessThan(2)
    for (const status of statuses) expect([400, 404, 505]).toContain(status)
    expect(answers[0]?.body ?? '').not.toContain('repositories')
  })

  test('of HTTP/1.0 without a Host is answered like other anonymous requests', async () => {
    for (const target of ['/v2/', '/v2/../v2/_catalog', `/v2/${repository}/blobs/${blobDigest}`, '/v2/a\x7f']) {
      const { statuses } = await send(`GET ${target} HTTP/1.0`)
      expect(statuses.every((status) => status === 401 || status === 400)).toBe(true)
    }
  })
})

describe('a method that is not for the path', () => {
  const paths = [
    `/v2/${repository}/manifests/kept`,
    `/v2/${repository}/blobs/${blobDigest}`,
    '/v2/_catalog',
    '/v2/',
    '/api/2023-12-28/enable',
    '/api/2023-12-28/stats',
    '/healthz',
  ]
  test.each(['PROPFIND', 'TRACE', 'OPTIONS', 'CONNECT', 'MKCOL', 'PURGE', 'M-SEARCH', 'LOCK'])(
    '%s is refused everywhere, with those that are allowed',
    async (method) => {
      for (const path of paths) {
        const { answers } = await guard.ask(method, path)
        expect(answers.map(({ status }) => status)).toEqual([405])
        expect(answers[0]?.headers.get('allow')).toMatch(/^[A-Z]+(, [A-Z]+)*$/)
        expect(answers[0]?.headers.get('access-control-allow-origin')).toBeUndefined()
      }
    },
  )

  test.each(['FOO', 'get', 'Get', 'GETX', ''])('%p, which no RFC knows, gets no content', async (method) => {
    for (const path of paths) {
      const { text } = await guard.ask(method, path)
      expect(text === '' || /^HTTP\/1\.1 (?:400|405|501|505) /.test(text)).toBe(true)
    }
  })

  test('TRACE gives nothing back of what it was sent', async () => {
    const { text } = await guard.ask('TRACE', '/v2/', ['X-Canary: sing'])
    expect(text).not.toContain('sing')
  })
})

guard.losesNothing()
