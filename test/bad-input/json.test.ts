import { describe, expect, test } from 'bun:test'
import { ociManifest } from '../../src/oci/media-types.ts'
import {
  configDescriptor,
  GuardedServer,
  imageText,
  type RequestBody,
  verdictOf,
} from '../support/server/guarded-server.ts'

const guard = new GuardedServer()
const size = 4 * 1_024 * 1_024

/** Into the repository that has the content, so that nothing but the body itself can be at fault. */
async function put(body: RequestBody, mediaType = ociManifest): Promise<string> {
  return verdictOf(await guard.putManifest('bad', body, mediaType))
}

const inside = (field: string) => imageText().replace(/^\{/, `{${field},`)

describe('a body that is made to hurt', () => {
  test.each([
    ['4 MiB of opening brackets', '['.repeat(size)],
    ['4 MiB of opening braces', '{"a":'.repeat(size / 5)],
    ['brackets deep inside a field', inside(`"x":${'['.repeat(100_000)}${']'.repeat(100_000)}`)],
    ['objects deep inside a field', inside(`"x":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`)],
    ['33 levels', inside(`"x":${'['.repeat(32)}${']'.repeat(32)}`)],
    [
      '1.4 million empty objects as layers',
      `{"schemaVersion":2,"config":${JSON.stringify(configDescriptor)},"layers":[${'{},'.repeat(1_398_000)}{}]}`,
    ],
    ['a key twice', inside('"x":1,"x":2')],
    ['a key twice, one escaped', inside('"x":1,"\\u0078":2')],
    ['a key in two cases', inside('"MediaType":"a/b"')],
    ['a key with the long s', inside('"layerſ":[]')],
    ['a field in another case alone', inside('"Manifests":[]')],
    ['a subject in another case', inside(`"Subject":${JSON.stringify(configDescriptor)}`)],
    ['a duplicate in a descriptor', imageText().replace('"digest":', '"digest":"sha256:x","digest":')],
    ['a byte order mark', `\ufeff${imageText()}`],
    ['a comment', `${imageText()}//`],
    ['a comma too many', imageText().replace(/\}$/, ',}')],
    ['single quotes', imageText().replaceAll('"', "'")],
    ['NaN', inside('"x":NaN')],
    ['a second document', imageText() + imageText()],
    ['a NUL behind it', `${imageText()}\0`],
    ['a control character in a text', inside('"x":"\n"')],
    ['nothing but space', ' '.repeat(1_000)],
    ['a list', `[${imageText()}]`],
    ['a form', 'schemaVersion=2&layers='],
    ['a page', '<html></html>'],
  ])('%s is refused', async (_what, body) => {
    expect(await put(body)).toBe('400 MANIFEST_INVALID')
  })

  test('bytes that are no UTF-8 are refused', async () => {
    const bytes = Buffer.from(inside('"x":"é"'))
    expect(await put(Uint8Array.from(bytes, (byte) => (byte === 0xc3 ? 0xff : byte)))).toBe('400 MANIFEST_INVALID')
    expect(await put(Buffer.from(imageText(), 'utf16le'))).toBe('400 MANIFEST_INVALID')
    expect(await put(Bun.gzipSync(Buffer.from(imageText())))).toBe('400 MANIFEST_INVALID')
  })

  test('a prototype in the keys pollutes nothing', async () => {
    const named = { annotations: JSON.parse('{"__proto__":"x","constructor":"y"}') }
    const answer = await guard.putManifest('keys', imageText(named), ociManifest, 'kept/keys')
    expect(await verdictOf(answer)).toBe('400 MANIFEST_BLOB_UNKNOWN')
    expect(await put(inside('"__proto__":{"config":1}'))).toMatch(/^(?:201|400 MANIFEST_INVALID)$/)
    expect(Object.getOwnPropertyNames({})).toEqual([])
    await guard.fetch('/v2/kept/app/manifests/bad', { method: 'DELETE' })
  })
})

guard.losesNothing()
