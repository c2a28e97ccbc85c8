import { describe, expect, test } from 'bun:test'
import { matchPattern, parsePattern } from '../../../src/http/route-pattern.ts'

function match(pattern: string, path: string) {
  return matchPattern(parsePattern(pattern), path.slice(1).split('/'))
}

describe('a pattern with a name in front', () => {
  test.each([
    ['/{name}/manifests/{reference}', '/a/manifests/b', { name: 'a', reference: 'b' }],
    ['/{name}/manifests/{reference}', '/a/b/c/manifests/b', { name: 'a/b/c', reference: 'b' }],
    ['/{name}/manifests/{reference}', '/manifests/manifests/manifests', { name: 'manifests', reference: 'manifests' }],
    ['/{name}/manifests/{reference}', '/a/tags/list/manifests/x', { name: 'a/tags/list', reference: 'x' }],
    ['/{name}/tags/list', '/a/manifests/b/tags/list', { name: 'a/manifests/b' }],
    ['/{name}/blobs/uploads/', '/a/blobs/uploads/', { name: 'a' }],
    ['/{name}/blobs/uploads/{id}', '/blobs/uploads/blobs/uploads/x', { name: 'blobs/uploads', id: 'x' }],
  ])('%p takes %p apart', (pattern, path, values) => {
    expect(match(pattern, path)).toEqual(values)
  })

  test.each([
    ['/{name}/manifests/{reference}', '/manifests/b'],
    ['/{name}/manifests/{reference}', '/a/manifests/'],
    ['/{name}/manifests/{reference}', '/a/manifests'],
    ['/{name}/manifests/{reference}', '/a/manifests/b/'],
    ['/{name}/manifests/{reference}', '/a/Manifests/b'],
    ['/{name}/tags/list', '/tags/list'],
    ['/{name}/tags/list', '/a/tags/list/'],
    ['/{name}/blobs/uploads/', '/a/blobs/uploads'],
    ['/{name}/blobs/uploads', '/a/blobs/uploads/'],
  ])('%p is not %p', (pattern, path) => {
    expect(match(pattern, path)).toBeUndefined()
  })
})

describe('a pattern without a name', () => {
  test('is met by exactly its own path', () => {
    expect(match('/healthz', '/healthz')).toEqual({})
    expect(match('/', '/')).toEqual({})
    expect(match('/a/{b}/c', '/a/x/c')).toEqual({ b: 'x' })
    for (const path of ['/healthz/', '/a/healthz', '/Healthz', '/']) expect(match('/healthz', path)).toBeUndefined()
    expect(match('/', '/a')).toBeUndefined()
  })
})
