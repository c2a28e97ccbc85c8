import { describe, expect, test } from 'bun:test'
import { ociManifest } from '../../src/oci/media-types.ts'
import {
  configDigest,
  GuardedServer,
  imageText,
  manifestDigest,
  repository,
  verdictOfRaw,
} from '../support/server/guarded-server.ts'

const guard = new GuardedServer()
const id = '01234567-89ab-4def-8123-456789abcdef'

/** A request by hand: what a client would tidy up has to arrive as it is. */
async function verdict(method: string, target: string, lines: readonly string[] = [], body = ''): Promise<string> {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
  return verdictOfRaw(await guard.ask(method, target, [...lines, ...length], body))
}

describe('a repository name that is none', () => {
  const names = [
    'Kept/app',
    'kept/App',
    'kept/-app',
    'kept/app-',
    'kept/a..b',
    'kept/a___b',
    'kept/_app',
    'kept/app@x',
    'kept/app:x',
    'kept/a%20b',
    'kept/a+b',
    'kept/a%25b',
    'kept/%C3%A9',
    'a'.repeat(256),
    `${'a/'.repeat(130)}a`,
    '%24%28id%29',
    "kept/app'--",
    '_catalog/x',
  ]
  test.each(names)('%p is refused by every route', async (name) => {
    const base = `/v2/${name}`
    const read = [
      await verdict('GET', `${base}/manifests/kept`),
      await verdict('GET', `${base}/blobs/${configDigest}`),
      await verdict('GET', `${base}/tags/list`),
      await verdict('GET', `${base}/referrers/${configDigest}`),
    ]
    const written = [
      await verdict('DELETE', `${base}/manifests/kept`),
      await verdict('PUT', `${base}/manifests/kept`, [`Content-Type: ${ociManifest}`], imageText()),
      await verdict('POST', `${base}/blobs/uploads/`),
      await verdict('PATCH', `${base}/blobs/uploads/${id}`, [], 'x'),
    ]
    expect([...new Set(read)]).toEqual(['404 NAME_UNKNOWN'])
    expect([...new Set(written)]).toEqual(['400 NAME_INVALID'])
    // As the source of a mount, it makes the request one for an upload.
    const query = `mount=${configDigest}&from=${name}`
    expect(await verdict('POST', `/v2/kept/mounted/blobs/uploads/?${query}`)).toBe('202')
  })
})

test('a name of 255 letters is good, and one letter more is not', async () => {
  const longest = 'a'.repeat(255)
  expect(await verdict('POST', `/v2/${longest}/blobs/uploads/`)).toBe('202')
  expect(await verdict('POST', `/v2/${longest}a/blobs/uploads/`)).toBe('400 NAME_INVALID')
})

describe('a tag that is none', () => {
  test.each(['.kept', '-kept', 'a%2Bb', 'a+b', 'a@b', 'a%20b', '%C3%A9', 'a,b', 'a'.repeat(129), 'a%25', "a'--", '*'])(
    '%p is refused',
    async (tag) => {
      const at = `/v2/${repository}/manifests/${tag}`
      const put = verdict('PUT', at, [`Content-Type: ${ociManifest}`], imageText())
      const verdicts = [await put, await verdict('GET', at), await verdict('HEAD', at), await verdict('DELETE', at)]
      expect(verdicts.map((one) => one.slice(0, 3))).toEqual(['400', '404', '404', '400'])
    },
  )

  test.each(['', '.x', 'a b', 'sha256:x', '%C3%A9', 'a'.repeat(129)])('%p is refused as a parameter', async (tag) => {
    const body = imageText()
    const digest = `sha256:${Bun.CryptoHasher.hash('sha256', body, 'hex')}`
    const target = `/v2/${repository}/manifests/${digest}?tag=good&tag=${tag.replaceAll(' ', '%20')}`
    expect(await verdict('PUT', target, [`Content-Type: ${ociManifest}`], body)).toBe('400 MANIFEST_INVALID')
  })
})

describe('a digest that is none', () => {
  const digests = [
    'sha256:',
    'sha256:abc',
    `sha256:${'A'.repeat(64)}`,
    `sha256:${'g'.repeat(64)}`,
    `sha256:${'0'.repeat(63)}`,
    `sha256:${'0'.repeat(65)}`,
    `sha512:${'0'.repeat(64)}`,
    `SHA256:${'0'.repeat(64)}`,
    `md5:${'0'.repeat(32)}`,
    `sha256:${'0'.repeat(62)}..`,
    `sha256:${'0'.repeat(60)}%27--`,
    ':',
    '::',
    `sha256:${'0'.repeat(2_000)}`,
  ]
  test.each(digests)('%p is refused wherever a digest is meant', async (digest) => {
    const base = `/v2/${repository}`
    const upload = await guard.startUpload()
    const read = [await verdict('GET', `${base}/blobs/${digest}`), await verdict('GET', `${base}/manifests/${digest}`)]
    const written = [
      await verdict('DELETE', `${base}/blobs/${digest}`),
      await verdict('DELETE', `${base}/manifests/${digest}`),
      await verdict('PUT', `${base}/manifests/${digest}`, [`Content-Type: ${ociManifest}`], imageText()),
      await verdict('POST', `${base}/blobs/uploads/?digest=${digest}`, [], 'x'),
      await verdict('POST', `${base}/blobs/uploads/?mount=${digest}&from=${repository}`),
      await verdict('PUT', `${upload}?digest=${digest}`),
    ]
    expect(read).toEqual(['404 BLOB_UNKNOWN', '404 MANIFEST_UNKNOWN'])
    expect([...new Set(written)]).toEqual(['400 DIGEST_INVALID'])
    expect(await verdict('GET', upload)).toBe('204')
  })

  test.each(['', 'md5', 'SHA256', 'sha256,sha512', '__proto__'])(
    'the algorithm %p is refused in advance',
    async (name) => {
      const target = `/v2/${repository}/blobs/uploads/?digest-algorithm=${name}`
      expect(await verdict('POST', target)).toBe('400 DIGEST_INVALID')
    },
  )
})

describe('an upload that is none', () => {
  test.each(['x', id, id.toUpperCase(), `${id}x`, '%2e%2e', '..%00', `${id}%20`, `${id}'--`, 'a'.repeat(500), '*'])(
    '%p is not found, or no path at all',
    async (upload) => {
      const at = `/v2/${repository}/blobs/uploads/${upload}`
      const asked = [
        await verdict('GET', at),
        await verdict('PATCH', at, [], 'x'),
        await verdict('PUT', `${at}?digest=${configDigest}`),
        await verdict('DELETE', at),
      ]
      for (const one of asked)
        expect(one).toMatch(
          /^(?:404 BLOB_UPLOAD_UNKNOWN|404 NAME_UNKNOWN|400 NAME_INVALID|404 UNSUPPORTED|405 UNSUPPORTED)$/,
        )
    },
  )
})

describe('where a page begins', () => {
  test.each([
    '',
    '%00',
    '%FF',
    '%F0%9F%92%A5',
    "'; DROP TABLE tags; --",
    '" OR 1=1 --',
    '%25',
    '_',
    '\\',
    'z'.repeat(4_000),
    '../../../../etc/passwd',
    '{{7*7}}',
    '%0d%0aX-Injected: 1',
  ])('%p is only compared', async (last) => {
    const query = last.includes('%') ? `last=${last.replaceAll(' ', '%20')}` : new URLSearchParams({ last }).toString()
    for (const list of [
      '/v2/_catalog',
      `/v2/${repository}/tags/list`,
      `/v2/${repository}/referrers/${manifestDigest}`,
    ]) {
      const answer = await guard.fetch(`${list}?${query}`)
      expect([list, answer.status, answer.headers.get('x-injected')]).toEqual([list, 200, null])
    }
  })

  test.each(["'; DROP TABLE manifests; --", '%', '%00', '\\', 'a'.repeat(4_000)])(
    'an artifact type of %p finds nothing',
    async (type) => {
      const query = new URLSearchParams({ artifactType: type === '%00' ? '\0' : type })
      const answer = await guard.fetch(`/v2/${repository}/referrers/${manifestDigest}?${query}`)
      expect([answer.status, ((await answer.json()) as { manifests: unknown[] }).manifests]).toEqual([200, []])
    },
  )
})

guard.losesNothing()
