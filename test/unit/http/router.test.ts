import { describe, expect, test } from 'bun:test'
import { type Area, apiPrefix, areaOf } from '../../../src/http/mounts.ts'
import { Router } from '../../../src/http/router.ts'
import { registryRoutes, serviceRoutes } from '../../../src/http/routes.ts'
import { catchRefusal, refusalOf } from '../../support/basics/outcomes.ts'

const router = new Router(registryRoutes, serviceRoutes)
const mounts = ['/v2', `${apiPrefix}/v2`] as const
const digest = `sha256:${'0'.repeat(64)}`
const id = '01234567-89ab-cdef-0123-456789abcdef'

function find(method: string, path: string): Readonly<Record<string, unknown>> {
  const { route, values } = router.find(areaOf(path, true), path, method)
  return { operationId: route.operationId, ...values }
}

/** Names made of the words that routes are made of. */
const oddNames = [
  'a',
  'blobs',
  'manifests',
  'tags',
  'uploads',
  'referrers',
  'a/tags/list',
  'a/blobs/uploads',
  'a/manifests/x',
  'tags/list/tags/list',
  'v2/a',
  'a/blobs/sha256/manifests/latest/tags/list',
]

describe.each(mounts)('under %s', (mount) => {
  test.each(oddNames)('the repository %p is found by every route', (name) => {
    const at = `${mount}/${name}`
    expect(find('GET', `${at}/manifests/x`)).toEqual({ operationId: 'getImageTagManifest', name, reference: 'x' })
    expect(find('PUT', `${at}/manifests/${digest}`)).toEqual({
      operationId: 'putImageTagManifest',
      name,
      reference: digest,
    })
    expect(find('DELETE', `${at}/manifests/list`)).toEqual({ operationId: 'deleteManifest', name, reference: 'list' })
    expect(find('GET', `${at}/tags/list`)).toEqual({ operationId: 'getImageTagsList', name })
    expect(find('GET', `${at}/referrers/${digest}`)).toEqual({ operationId: 'getImageDigestReferrers', name, digest })
    expect(find('GET', `${at}/blobs/${digest}`)).toEqual({ operationId: 'getBlob', name, digest })
    expect(find('DELETE', `${at}/blobs/${digest}`)).toEqual({ operationId: 'deleteBlob', name, digest })
    expect(find('POST', `${at}/blobs/uploads/`)).toEqual({ operationId: 'postUpload', name })
    expect(find('POST', `${at}/blobs/uploads`)).toEqual({ operationId: 'postUploadWithoutSlash', name })
    for (const method of ['PATCH', 'PUT', 'GET', 'DELETE']) {
      const operationId = `${method.toLowerCase()}Upload`
      expect(find(method, `${at}/blobs/uploads/${id}`)).toEqual({ operationId, name, id })
    }
  })

  test('the authentication check has a path with and one without a slash', () => {
    expect(find('GET', mount)).toEqual({ operationId: 'checkAuthentication' })
    expect(find('GET', `${mount}/`)).toEqual({ operationId: 'checkAuthentication' })
  })

  test('HEAD finds the route of GET', () => {
    expect(find('HEAD', `${mount}/a/manifests/x`)['operationId']).toBe('getImageTagManifest')
    expect(refusalOf(() => find('HEAD', `${mount}/a/blobs/uploads/`))).toBe('method-unsupported')
  })

  test.each([
    '/_catalog/',
    '/a',
    '/a/',
    '/a/tags',
    '/a/tags/list/',
    '/a/manifests/',
    '/a/blobs/',
    '/tags/list',
    '/_Catalog',
  ])('there is nothing at %p', (path) => {
    expect(refusalOf(() => find('GET', mount + path))).toBe('route-unknown')
  })

  test('an unsupported method is refused with a list of the supported methods', () => {
    const allowed = (method: string, path: string) => {
      const refusal = catchRefusal(() => find(method, mount + path))
      expect(refusal?.refusal).toBe('method-unsupported')
      return refusal?.details[0]?.['allow']
    }
    expect(allowed('POST', '/a/manifests/x')).toBe('GET, HEAD, PUT, DELETE')
    expect(allowed('GET', '/a/blobs/uploads/')).toBe('POST')
    expect(allowed('PUT', `/a/blobs/${digest}`)).toBe('GET, HEAD, DELETE')
    expect(allowed('TRACE', '/_catalog')).toBe('GET, HEAD')
    expect(allowed('get', '/_catalog')).toBe('GET, HEAD')
    expect(allowed('toString', '/')).toBe('GET, HEAD')
  })
})

describe('the area of a path', () => {
  const kinds = (path: string, hasRootMount: boolean): Area => areaOf(path, hasRootMount)

  test('is one of the two mounts, or the service', () => {
    expect(kinds('/v2/a', true)).toEqual({ kind: 'registry', mount: '/v2' })
    expect(kinds(`${apiPrefix}/v2/a`, true)).toEqual({ kind: 'registry', mount: `${apiPrefix}/v2` })
    for (const path of [
      '/',
      '/v2x',
      '/V2/',
      '/v1/',
      `${apiPrefix}/v2x`,
      `${apiPrefix}/stats`,
      '/api/2024-01-01/v2/a',
      '',
    ]) {
      expect(kinds(path, true)).toEqual({ kind: 'service' })
    }
  })

  test('is the service at /v2/ if the root mount is off', () => {
    expect(kinds('/v2/', false)).toEqual({ kind: 'service' })
    expect(kinds('/v2', false)).toEqual({ kind: 'service' })
    expect(kinds(`${apiPrefix}/v2/`, false)).toEqual({ kind: 'registry', mount: `${apiPrefix}/v2` })
  })
})

test('every service route is found at its own path and only by its own method', () => {
  for (const { method, pattern, operationId } of serviceRoutes) {
    expect(find(method, pattern)).toMatchObject({ operationId })
    const taken = serviceRoutes.filter((row) => row.pattern === pattern).map((row) => row.method)
    for (const other of (['GET', 'PUT', 'POST', 'PATCH', 'DELETE'] as const).filter((one) => !taken.includes(one))) {
      expect(refusalOf(() => find(other, pattern))).toBe('method-unsupported')
    }
    expect(refusalOf(() => find(method, `${pattern}/`))).toBe('route-unknown')
  }
})

test('operation ids are unique, and so are pairs of method and pattern', () => {
  const all = [...registryRoutes, ...serviceRoutes]
  expect(new Set(all.map((row) => row.operationId)).size).toBe(all.length)
  for (const table of [registryRoutes, serviceRoutes]) {
    expect(new Set(table.map((row) => `${row.method} ${row.pattern}`)).size).toBe(table.length)
  }
})
