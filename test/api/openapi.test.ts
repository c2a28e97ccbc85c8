// The OpenAPI document: what it derives from the routes, and what spec.md declares.
import { afterAll, describe, expect, test } from 'bun:test'
import { errorTable } from '../../src/http/error-body.ts'
import { apiPrefix } from '../../src/http/mounts.ts'
import { parseChunkRange } from '../../src/http/ranges.ts'
import type { Route } from '../../src/http/route.ts'
import { registryRoutes, serviceRoutes } from '../../src/http/routes.ts'
import { isUserName, parseKeyName } from '../../src/identity/names.ts'
import { isDigest, isDigestAlgorithm, isWellFormedDigest } from '../../src/oci/digest.ts'
import { findReference, isRepositoryName } from '../../src/oci/names.ts'
import { api, startApi } from '../support/api/api-server.ts'
import { openApi, operationOf, operations } from '../support/api/openapi-document.ts'
import { refusalOf } from '../support/basics/outcomes.ts'

const server = await startApi()
afterAll(() => server.stop())

const rows: readonly { route: Route; fullPaths: readonly string[] }[] = [
  ...serviceRoutes.map((route) => ({ route, fullPaths: [route.pattern] })),
  ...registryRoutes.map((route) => ({ route, fullPaths: [`${apiPrefix}/v2${route.pattern}`, `/v2${route.pattern}`] })),
]
const documentedRows = rows.filter(({ route }) => !('aliasOf' in route))
const documented = operations.filter((operation) => operation.method !== 'HEAD')

describe('the document against the routes', () => {
  test('every operation has the method of its route, and its servers and path give the paths of the route', () => {
    // spec.md and the distribution-spec name path parameters differently.
    const withoutNames = (paths: readonly string[]) => paths.map((path) => path.replaceAll(/\{\w+\}/g, '{}')).sort()

    for (const { route, fullPaths } of documentedRows) {
      const operation = operationOf(route.operationId)
      expect([operation.method, ...withoutNames(operation.fullPaths)]).toEqual([
        route.method,
        ...withoutNames(fullPaths),
      ])
    }
  })

  test.each(documentedRows.map((row) => [row.route.operationId, row.route] as const))(
    '%s states who may call its route',
    (operationId, route) => {
      const operation = operationOf(operationId)
      const isOpen = operation.security !== undefined

      expect(isOpen ? operation.security : []).toEqual([])
      expect(isOpen).toBe(route.access === 'anyone')
      expect(operation['x-required-right']).toBe(route.access === 'anyone' ? undefined : route.right)
    },
  )

  test('an operation mentions the routes that are aliases of it', () => {
    const reasons = rows.flatMap(({ route }) => ('aliasOf' in route ? [[route.aliasOf, route.reason] as const] : []))

    expect(reasons.length).toBeGreaterThan(0)
    for (const [aliasOf, reason] of reasons) expect(operationOf(aliasOf).description).toContain(reason)
  })

  test('every GET has a HEAD without a body and without other statuses', () => {
    for (const get of documented.filter((operation) => operation.method === 'GET')) {
      const head = operations.find((other) => other.method === 'HEAD' && other.path === get.path)

      expect(Object.keys(head?.responses ?? {}).filter((status) => !(status in get.responses))).toEqual([])
      expect(head).toBeDefined()
      expect(head?.responses['200']?.content).toBeUndefined()
    }
  })

  test('every path parameter is described as required', () => {
    for (const { path, parameters } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')
      const described = parameters.filter((parameter) => parameter.in === 'path' && parameter.required === true)

      expect(described.map((parameter) => parameter.name)).toEqual(inPath)
    }
  })

  test('every status of the error table appears in some operation', () => {
    const statuses = new Set(documented.flatMap((operation) => Object.keys(operation.responses).map(Number)))
    const expected = new Set(Object.values(errorTable).map((row) => row.status))

    expect([...expected].filter((status) => !statuses.has(status))).toEqual([])
  })
})

/** spec.md, 4 and 7: path, success, and the statuses that it lists. */
const nine = [
  ['enableService', 'POST', '/enable', 200, [401, 500, 503]],
  ['disableService', 'POST', '/disable', 200, [401]],
  ['getStats', 'GET', '/stats', 200, [401]],
  ['checkAuthentication', 'GET', '/v2/', 200, [401]],
  ['getCatalog', 'GET', '/v2/_catalog', 200, [401]],
  ['getImageTagManifest', 'GET', '/v2/{image}/manifests/{tag}', 200, [401, 404]],
  ['putImageTagManifest', 'PUT', '/v2/{image}/manifests/{tag}', 201, [400, 401]],
  ['getImageDigestReferrers', 'GET', '/v2/{image}/referrers/{digest}', 200, [401]],
  ['getImageTagsList', 'GET', '/v2/{image}/tags/list', 200, [401, 500]],
] as const

describe('the document against spec.md', () => {
  test.each(nine)('%s stands where spec.md has it, with its statuses', (operationId, method, path, success, errors) => {
    const operation = operationOf(operationId)

    expect([operation.method, operation.path]).toEqual([method, path])
    expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining([success, ...errors].map(String)))
  })

  test('the schemas of section 2 have the names and fields of spec.md', () => {
    const fields = Object.fromEntries(
      Object.entries(openApi.components.schemas).map(([name, schema]) => [
        name,
        Object.keys(schema['properties'] ?? {}),
      ]),
    )

    expect(fields).toMatchObject({
      ErrorMessage: ['msg'],
      StatsResponse: ['imageCount', 'serverUrl'],
      CatalogResponse: ['repositories'],
      TagsListResponse: ['name', 'tags'],
      ManifestResponse: ['schemaVersion', 'mediaType', 'manifests'],
      ReferrerResponse: ['schemaVersion', 'mediaType', 'manifests'],
      ReferrerManifest: ['mediaType', 'size', 'digest', 'artifactType', 'annotations'],
    })
  })

  test('the two declared security schemes are the same', () => {
    expect(openApi.components.securitySchemes).toMatchObject({
      apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY' },
      oauth2: { type: 'oauth2', flows: { implicit: { scopes: { 'dummy:dummy': expect.any(String) } } } },
    })
    expect(openApi.security).toEqual(expect.arrayContaining([{ apiKey: [] }, { oauth2: ['dummy:dummy'] }]))
  })

  test('every carrier of section 5 has a scheme, and one scheme is enough', () => {
    const declared = Object.keys(openApi.components.securitySchemes).sort()

    expect(openApi.security.flatMap((one) => Object.keys(one)).sort()).toEqual(declared)
    expect(declared).toEqual(['apiKey', 'apiKeyQuery', 'basic', 'bearer', 'cookie', 'oauth2'])
  })

  test('the version of the path has a single value, which is the default', () => {
    expect(openApi.servers[0]?.variables?.['version']).toEqual({ enum: ['2023-12-28'], default: '2023-12-28' })
  })

  test('putImageTagManifest accepts exactly the three media types', () => {
    const { requestBody } = operationOf('putImageTagManifest')

    expect(requestBody?.required).toBe(true)
    expect(Object.keys(requestBody?.content ?? {})).toEqual([
      'application/vnd.docker.distribution.manifest.v2+json',
      'application/vnd.oci.image.manifest.v1+json',
      'application/vnd.oci.image.index.v1+json',
    ])
  })
})

interface ParameterSchema {
  readonly pattern?: string
  readonly maxLength?: number
  readonly enum?: readonly string[]
}

describe('the schema of a parameter accepts what the server accepts, and nothing else', () => {
  const hex = 'a1'.repeat(32)
  const texts = [
    ...[
      '',
      'v1',
      '_',
      '-v1',
      '.v1',
      'a b',
      'V1.0_x-y',
      'a'.repeat(64),
      'a'.repeat(65),
      'a'.repeat(128),
      'a'.repeat(129),
    ],
    ...['library/alpine', 'a//b', 'App', 'a__b', 'a___b', 'a'.repeat(255), 'a'.repeat(256), 'ann@example.com', 'x\n'],
    ...[`sha256:${hex}`, `sha256:${hex.toUpperCase()}`, `sha512:${hex}`, `sha512:${hex}${hex}`, 'sha256:short', ':'],
    ...[
      'md5:d41d8cd98f00b204e9800998ecf8427e',
      `blake3:${hex}`,
      `x:${'a'.repeat(300)}`,
      '0-9',
      '0-',
      'bytes 0-9',
      '10-19',
    ],
    ...['sha256', 'sha512', 'SHA256', 'md5'],
  ]
  const accepted: Readonly<Record<string, (text: string) => boolean>> = {
    image: isRepositoryName,
    tag: (text) => findReference(text) !== undefined,
    digest: isDigest,
    subject: isWellFormedDigest,
    mount: isDigest,
    closingDigest: isDigest,
    digestAlgorithm: isDigestAlgorithm,
    user: isUserName,
    key: (text) => refusalOf(() => parseKeyName(text)) === undefined,
    contentRange: (text) => refusalOf(() => parseChunkRange(text)) === undefined,
  }

  test.each(Object.entries(accepted))('%s', (name, isAccepted) => {
    const schema = openApi.components.parameters[name]?.schema ?? expect.unreachable()
    const { pattern, maxLength = Infinity, enum: options } = schema as ParameterSchema
    const isDescribed = (text: string) =>
      text.length <= maxLength &&
      (options?.includes(text) ?? new RegExp(pattern ?? expect.unreachable(), 'u').test(text))
    const described = texts.filter(isDescribed)

    expect(described.length).toBeGreaterThan(0)
    expect(described).toEqual(texts.filter(isAccepted))
  })

  test('a manifest requires its descriptors', () => {
    const { ImageManifestUpload, ImageIndexUpload } = openApi.components.schemas

    expect(ImageManifestUpload?.['required']).toEqual(['schemaVersion', 'config', 'layers'])
    expect(ImageIndexUpload?.['required']).toEqual(['schemaVersion', 'manifests'])
  })
})

describe('getOpenApi', () => {
  test('with `auth.url`, names the other identity service and has no users or keys', async () => {
    const own = await startApi({ BERTH_AUTH__URL: 'https://id.example.com/base' })
    const { paths, components } = (await own.ask('GET', `${api}/openapi.json`, { key: 'none' })).json<typeof openApi>()
    await own.stop()
    const at = 'https://id.example.com/base/api/2021-02-21'

    expect(components.securitySchemes['oauth2']).toMatchObject({
      flows: { implicit: { authorizationUrl: `${at}/token/auth` } },
    })
    expect(paths['/token/auth']).toMatchObject({ servers: [{ url: at }] })
    expect(paths['/me']).toMatchObject({ servers: [{ url: '/api/2021-02-21' }] })
    expect(Object.keys(paths).filter((path) => /^\/(?:users|jwks)/.test(path))).toEqual([])
  })

  test('returns the document to anonymous callers, at revision 2.0.2, with the same bytes each time', async () => {
    const reply = await server.ask('GET', `${api}/openapi.json`, { key: 'none' })

    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toBe('application/json')
    expect(reply.json<typeof openApi>()).toEqual(openApi)
    expect((await server.ask('GET', `${api}/openapi.json`)).text).toBe(reply.text)
    expect([openApi.openapi, openApi.info.version]).toEqual([expect.stringMatching(/^3\.1\.\d$/), '2.0.2'])
  })
})
