import { describe, expect, test } from 'bun:test'
import { blobLocation, manifestLocation, nextPage, uploadLocation } from '../../../src/http/links.ts'
import { parseDigest } from '../../../src/oci/digest.ts'
import { parseRepositoryName } from '../../../src/oci/names.ts'
import type { UploadId } from '../../../src/ports/uploads.ts'

const name = parseRepositoryName('library/alpine')
const digest = parseDigest(`sha256:${'0'.repeat(64)}`)

describe('an address', () => {
  test('is path-absolute and stays in the mount of the request', () => {
    for (const mount of ['/v2', '/api/2023-12-28/v2'] as const) {
      expect(blobLocation(mount, name, digest)).toBe(`${mount}/library/alpine/blobs/${digest}`)
      expect(manifestLocation(mount, name, 'latest')).toBe(`${mount}/library/alpine/manifests/latest`)
      expect(uploadLocation(mount, name, 'x' as UploadId)).toBe(`${mount}/library/alpine/blobs/uploads/x`)
    }
  })
})

describe('a link to the next page', () => {
  test('names the rest, in the form of RFC 8288', () => {
    expect(nextPage('/v2/_catalog', { n: '5', last: 'library/alpine' })).toBe(
      '</v2/_catalog?n=5&last=library%2Falpine>; rel="next"',
    )
  })

  test('repeats what was repeated', () => {
    expect(nextPage('/p', { artifactType: ['a/b+c', 'd'], last: 'e' })).toBe(
      '</p?artifactType=a%2Fb%2Bc&artifactType=d&last=e>; rel="next"',
    )
  })

  test('cannot be broken out of', () => {
    const link = nextPage('/p', { last: '>; rel="x", <//evil>\r\nset-cookie: a=b&n=1#' })
    expect(link).toMatch(/^<\/p\?last=[^<>"\s&#]*>; rel="next"$/)
  })
})
