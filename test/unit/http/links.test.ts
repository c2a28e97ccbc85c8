import { describe, expect, test } from 'bun:test'
import { blobLocation, manifestLocation, nextPage, uploadLocation } from '../../../src/http/links.ts'
import { checkHost, originOf } from '../../../src/http/origin.ts'
import { parseDigest } from '../../../src/oci/digest.ts'
import { parseRepositoryName } from '../../../src/oci/names.ts'
import type { UploadId } from '../../../src/ports/uploads.ts'
import { refusalOf } from '../../support/refusal-of.ts'

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

describe('the address by which we were reached', () => {
  const request = (host?: string) =>
    new Request('http://x/', {
      headers: { ...(host === undefined ? {} : { host }), 'x-forwarded-host': 'evil.example' },
    })

  test('is the configured one, whatever the request says', () => {
    expect(originOf(request('evil.example'), 'https://registry.example.com')).toBe('https://registry.example.com')
  })

  test('is else the one that the request named, and never a forwarded one', () => {
    expect(originOf(request('127.0.0.1:5000'), undefined)).toBe('http://127.0.0.1:5000')
    expect(originOf(request(), undefined)).not.toContain('evil')
  })
})

describe('a Host', () => {
  test.each([
    null,
    'localhost',
    '127.0.0.1',
    '127.0.0.1:5000',
    'Registry.Example.COM:443',
    '[::1]',
    '[fe80::1]:5000',
    'a_b',
  ])('%p is one', (host) => {
    expect(refusalOf(() => checkHost(host))).toBeUndefined()
  })

  test.each([
    '',
    'a, b',
    'a,a',
    'a b',
    'a/b',
    'a?b',
    'a#b',
    'u@h',
    'u:p@h',
    'a:',
    'a:b',
    ':80',
    '[::1',
    '::1',
    'a"',
    '<a>',
    'a\\b',
    'é',
    'a%20b',
  ])('%p is none', (host) => {
    expect(refusalOf(() => checkHost(host))).toBe('host-invalid')
  })
})
