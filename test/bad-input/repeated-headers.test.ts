import { describe, expect, test } from 'bun:test'
import { ociIndex, ociManifest } from '../../src/oci/media-types.ts'
import { sendRaw } from '../support/clients/raw-socket.ts'
import { authorization, GuardedServer, imageText, repository, verdictOfRaw } from '../support/server/guarded-server.ts'

const guard = new GuardedServer()

/** A request with exactly these header lines. */
async function verdict(method: string, target: string, lines: readonly string[], body = ''): Promise<string> {
  const text = [`${method} ${target} HTTP/1.1`, 'Connection: close', ...lines, '', body].join('\r\n')
  return verdictOfRaw(await sendRaw(guard.port, text))
}

const host = 'Host: 127.0.0.1'

describe('a Host', () => {
  const ask = (...hosts: string[]) =>
    verdict('GET', '/v2/_catalog', [...hosts.map((one) => `Host: ${one}`), authorization])

  test.each<readonly [string, string, readonly string[][]]>([
    [
      'that is one name or address, with a port or without',
      '200',
      ['127.0.0.1', '127.0.0.1:5000', 'registry.example.com', '[::1]:5000', 'REGISTRY', 'a_b:80'].map((one) => [one]),
    ],
    // Two readers could pick different ones.
    [
      'that is there twice',
      '400',
      [
        ['127.0.0.1', 'evil.example'],
        ['127.0.0.1', '127.0.0.1'],
        ['', '127.0.0.1'],
      ],
    ],
    [
      'that is none',
      '400',
      ['', 'a b', 'a/b', 'a?b', 'user:word@evil.example', 'a,b', 'a:port', '[::1', 'a"b', '<script>'].map((one) => [
        one,
      ]),
    ],
    ['that is missing', '400', [[]]],
  ])('%s is %s', async (_what, status, all) => {
    for (const hosts of all) expect([hosts, (await ask(...hosts)).slice(0, 3)]).toEqual([hosts, status])
  })
})

describe('a Content-Length that is given twice', () => {
  const put = (lines: readonly string[], body: string) =>
    verdict(
      'POST',
      `/v2/kept/twice/blobs/uploads/?digest=sha256:${Bun.CryptoHasher.hash('sha256', body, 'hex')}`,
      [host, authorization, ...lines],
      body,
    )

  const notNumbers = [
    '+3',
    '-3',
    '0x3',
    '3.0',
    '3e0',
    ' 3 3',
    'three',
    '99999999999999999999',
    '18446744073709551619',
    '٣',
  ]
  test.each([
    ['with two values', ['3', '4']],
    ['with two values, the other way round', ['4', '3']],
    ['as a list', ['3, 3']],
    ['as a list of two', ['3, 4']],
    ['once empty', ['', '3']],
    ['with one value', ['3', '3']],
    ...notNumbers.map((length) => [`or is no number (${length})`, [length]] as const),
  ])('%s is refused', async (_what, lengths) => {
    const lines = lengths.map((length) => `Content-Length: ${length}`)
    expect((await put(lines, 'abc')).slice(0, 3)).toBe('400')
  })
})

describe('a Content-Range that is given twice', () => {
  test.each([
    ['0-2', '0-2'],
    ['0-2', '3-5'],
    ['3-5', '0-2'],
  ])('%p and %p is refused, and nothing is appended', async (first, second) => {
    const upload = await guard.startUpload()
    const lines = [host, authorization, 'Content-Length: 3', `Content-Range: ${first}`, `Content-Range: ${second}`]
    expect(await verdict('PATCH', upload, lines, 'abc')).toBe('400 BLOB_UPLOAD_INVALID')
    expect(await guard.receivedRange(upload)).toBe('0-0')
  })
})

describe('a Content-Type that is given twice', () => {
  test.each([
    ['two types', ociManifest, ociIndex],
    ['one type', ociManifest, ociManifest],
    ['two types, the first with a parameter', `${ociManifest}; a=b`, ociIndex],
    ['a type and nothing', ociManifest, ''],
  ])('with %s is refused', async (_what, first, second) => {
    const body = imageText({ mediaType: undefined })
    const lines = [
      host,
      authorization,
      `Content-Length: ${body.length}`,
      `Content-Type: ${first}`,
      `Content-Type: ${second}`,
    ]
    expect(await verdict('PUT', `/v2/${repository}/manifests/twice`, lines, body)).toBe('400 MANIFEST_INVALID')
  })
})

guard.losesNothing()
