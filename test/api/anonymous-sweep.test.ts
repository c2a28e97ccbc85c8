// No path in any spelling can be used without credentials. The paths come from the route table, so new routes are included.
import { afterAll, describe, expect, test } from 'bun:test'
import type { Route } from '../../src/http/route.ts'
import { registryRoutes, serviceRoutes } from '../../src/http/routes.ts'
import { pushApiImage, startUpload } from '../support/api/api-images.ts'
import { mounts, startApi } from '../support/api/api-server.ts'
import { askRaw } from '../support/clients/raw-socket.ts'

const server = await startApi()
afterAll(() => server.stop())

// Everything that the paths name is really there, so that a handler that is reached would answer yes.
const { digest } = await pushApiImage(server, 'sweep/app', 'v1')
const uploadId = (await startUpload(server, 'sweep/app')).split('/').at(-1) ?? ''
const values: Readonly<Record<string, string>> = {
  name: 'sweep/app',
  reference: 'v1',
  digest,
  id: uploadId,
  user: 'admin',
  key: 'preset',
}

interface Target {
  readonly route: Route
  readonly path: string
}
const fill = (pattern: string) => pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '')
const all: readonly Target[] = [
  ...serviceRoutes.map((route) => ({ route, path: fill(route.pattern) })),
  ...mounts.flatMap((mount) => registryRoutes.map((route) => ({ route, path: mount + fill(route.pattern) }))),
]
const guarded = all.filter(({ route }) => route.access !== 'anyone')
const guardedPaths = [...new Set(guarded.map(({ path }) => path))]
const publicPaths = new Set(all.filter(({ route }) => route.access === 'anyone').map(({ path }) => path))

const methods = ['GET', 'HEAD', 'PUT', 'POST', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']
const refusedStatuses = [400, 401, 404, 405]

test('the sweep has its targets', () => {
  expect(guarded.length).toBeGreaterThan(30)
  for (const { path } of all) expect(path).not.toContain('{')
})

describe.each(methods)('an anonymous caller gets nothing by %s', (method) => {
  test.each(guardedPaths)('%s', async (path) => {
    const reply = await askRaw(server.port, `${method} ${path} HTTP/1.1`)

    expect(refusedStatuses).toContain(reply.status)
  })
})

const lastSlash = (path: string, by: string) => path.replace(/\/([^/]*)$/, `${by}$1`)
const mutations: readonly (readonly [string, (path: string) => string])[] = [
  ['a slash at the end', (path) => `${path}/`],
  ['two slashes at the start', (path) => `/${path}`],
  ['two slashes at the end', (path) => lastSlash(path, '//')],
  ['a dot segment at the start', (path) => `/.${path}`],
  ['a dot segment at the end', (path) => lastSlash(path, '/./')],
  ['a step up and down again', (path) => lastSlash(path, '/x/../')],
  ['a step up from a public path', (path) => `/healthz/..${path}`],
  ['an encoded step up from a public path', (path) => `/healthz/%2e%2e${path}`],
  ['an encoded slash', (path) => lastSlash(path, '%2f')],
  ['an encoded backslash', (path) => lastSlash(path, '%5c')],
  ['a backslash', (path) => lastSlash(path, '\\')],
  ['a twice encoded slash', (path) => lastSlash(path, '%252f')],
  ['an encoded letter', (path) => path.replace('v', '%76').replace('a', '%61')],
  ['an encoded underscore', (path) => path.replace('_', '%5f')],
  ['a twice encoded letter', (path) => path.replace('v', '%2576')],
  ['capitals', (path) => path.toUpperCase()],
  ['a path parameter', (path) => lastSlash(path, ';x/')],
  ['a path parameter at the end', (path) => `${path};x=1`],
  ['a null byte', (path) => `${path}%00`],
  ['an encoded query', (path) => `${path}%3fx`],
  ['an encoded line break', (path) => `${path}%0d%0aX-API-KEY:x`],
  ['a dot at the end', (path) => `${path}.`],
  ['an overlong encoding of a slash', (path) => lastSlash(path, '%c0%af')],
  ['an extension', (path) => `${path}.json`],
  ['a fragment', (path) => `${path}#/healthz`],
  ['a query that names a public path', (path) => `${path}?/healthz`],
  ['another host in front', (path) => `http://127.0.0.1/healthz/..${path}`],
]

describe.each(mutations)('an anonymous caller gets nothing by a path with %s', (_, mutate) => {
  test.each(guardedPaths)('%s', async (path) => {
    const mutated = mutate(path)
    if (publicPaths.has(mutated)) return
    for (const method of ['GET', 'POST', 'DELETE']) {
      const reply = await askRaw(server.port, `${method} ${mutated} HTTP/1.1`)

      expect(refusedStatuses).toContain(reply.status)
    }
  })
})

test('nothing was changed by all this', async () => {
  const replies = [
    await server.ask('GET', '/v2/sweep/app/manifests/v1'),
    await server.ask('GET', `/v2/sweep/app/blobs/uploads/${uploadId}`),
  ]

  expect(replies.map((reply) => reply.status)).toEqual([200, 204])
})
