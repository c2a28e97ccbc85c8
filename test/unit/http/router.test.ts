// Which route a path finds. Paths that are built from a route and any name: test/fuzz/request-target.test.ts.
import { describe, expect, test } from 'bun:test'
import { apiPrefix, areaOf } from '../../../src/http/mounts.ts'
import { parseTarget } from '../../../src/http/request-target.ts'
import { Router } from '../../../src/http/router.ts'
import { registryRoutes, serviceRoutes } from '../../../src/http/routes.ts'
import { catchRefusal, refusalOf } from '../../support/basics/outcomes.ts'

const router = new Router(registryRoutes, serviceRoutes)
const digest = `sha256:${'0'.repeat(64)}`

function find(method: string, path: string): Readonly<Record<string, unknown>> {
  const { route, values } = router.find(areaOf(path, true), path, method)
  return { operationId: route.operationId, ...values }
}

describe.each(['/v2', `${apiPrefix}/v2`])('under %s', (mount) => {
  test.each([
    ['GET', '', { operationId: 'checkAuthentication' }],
    ['GET', '/', { operationId: 'checkAuthentication' }],
    ['HEAD', '/a/manifests/x', { operationId: 'getImageTagManifest', name: 'a', reference: 'x' }],
    ['POST', '/a/blobs/uploads', { operationId: 'postUploadWithoutSlash', name: 'a' }],
    // A name that is made of the words of routes.
    [
      'GET',
      '/a/blobs/sha256/manifests/latest/tags/list/tags/list',
      { operationId: 'getImageTagsList', name: 'a/blobs/sha256/manifests/latest/tags/list' },
    ],
  ])('%s %s is found', (method, path, found) => {
    expect(find(method, mount + path)).toEqual(found)
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
  ])('there is nothing at %p', (path) => expect(refusalOf(() => find('GET', mount + path))).toBe('route-unknown'))

  test.each([
    ['POST', '/a/manifests/x', 'GET, HEAD, PUT, DELETE'],
    ['GET', '/a/blobs/uploads/', 'POST'],
    ['HEAD', '/a/blobs/uploads/', 'POST'],
    ['PUT', `/a/blobs/${digest}`, 'GET, HEAD, DELETE'],
    ['TRACE', '/_catalog', 'GET, HEAD'],
    ['get', '/_catalog', 'GET, HEAD'],
    ['toString', '/', 'GET, HEAD'],
  ])('%s %s is refused with the list of the supported methods', (method, path, allow) => {
    const refusal = catchRefusal(() => find(method, mount + path))
    expect([refusal?.refusal, refusal?.details[0]?.['allow']]).toEqual(['method-unsupported', allow])
  })
})

describe('the area of a path', () => {
  const service = { kind: 'service' } as const
  const registryAt = (mount: string) => ({ kind: 'registry', mount }) as never

  test.each([
    ['/v2/a', true, registryAt('/v2')],
    [`${apiPrefix}/v2/a`, true, registryAt(`${apiPrefix}/v2`)],
    [`${apiPrefix}/v2/a`, false, registryAt(`${apiPrefix}/v2`)],
    ...['/v2/', '/v2'].map((path) => [path, false, service] as const),
    ...['/', '', '/v2x', '/V2/', '/v1/'].map((path) => [path, true, service] as const),
    ...[`${apiPrefix}/v2x`, `${apiPrefix}/stats`, '/api/2024-01-01/v2/a'].map((path) => [path, true, service] as const),
  ] as const)('%s, where the root mount is %p', (path, hasRootMount, area) => {
    expect(areaOf(path, hasRootMount)).toEqual(area)
  })
})

test('every service route is found at its own path and only by its own method', () => {
  for (const { method, pattern, operationId } of serviceRoutes) {
    expect(find(method, pattern)).toMatchObject({ operationId })
    const taken = serviceRoutes.filter((row) => row.pattern === pattern).map((row) => row.method)
    for (const other of (['GET', 'PUT', 'POST', 'PATCH', 'DELETE'] as const).filter((one) => !taken.includes(one))) {
      expect(refusalOf(() => find(other, pattern))).toBe('method-unsupported')
    }
    // Below `/repositories/`, all that no other route has is the name of a repository. This one is not valid.
    if (pattern.includes('/repositories'))
      expect(find('GET', `${pattern}/`)).toMatchObject({ operationId: 'getRepository' })
    else expect(refusalOf(() => find(method, `${pattern}/`))).toBe('route-unknown')
  }
})

test('operation ids are unique, and so are pairs of method and pattern', () => {
  const all = [...registryRoutes, ...serviceRoutes]
  expect(new Set(all.map((row) => row.operationId)).size).toBe(all.length)
  for (const table of [registryRoutes, serviceRoutes]) {
    expect(new Set(table.map((row) => `${row.method} ${row.pattern}`)).size).toBe(table.length)
  }
})

// Over HTTP: test/bad-input/paths.test.ts. Here they arrive as they are, because no URL resolves their dots before.
test.each([
  ...['/v2//a', '//v2/a', '/v2/a//', '/v2/a%2fb', '/v2/a%2Fb', '/v2/a%5cb', '/v2/a%5Cb', '/v2/%2e%2e/a', '/v2/%2E/a'],
  ...['/v2/a%00', '/v2/a%0d%0aX', '/v2/a%09', '/v2/a%1F', '/v2/a%7f', '/v2/a%', '/v2/a%2', '/v2/a%zz', '/v2/%c0%af'],
  ...['/v2/%e0%80%af', '/v2/%ff', '/v2/%ed%a0%80', '/v2/a%C2%9B31m', '/v2/a%C2%85', '/v2/a%E2%80%AE', '/v2/a%C3%A9'],
])('%p is refused, because two readers could read it differently', (path) => {
  expect(refusalOf(() => parseTarget(`http://127.0.0.1:5000${path}`))).toBe('path-invalid')
})
