import { apiPrefix, identityPrefix } from '../mounts.ts'
import type { DocumentedRoute, Route, RouteTable } from '../route.ts'
import { describeOperation, type Group, type Operation, toOperation } from './operations.ts'
import { parameters } from './parameters.ts'
import { schemas } from './schemas.ts'

// spec.md, 9: "a single value, `2023-12-28`, which is also the default".
const version = apiPrefix.slice('/api/'.length)
const apiServer = {
  url: '/api/{version}',
  description: 'The administrative part and the registry interface.',
  variables: { version: { enum: [version], default: version } },
}
const rootServer = { url: '/', description: 'The registry interface at the root, where most clients look for it.' }

/**
 * Paths are written as in spec.md, relative to `/api/{version}`. The servers of a path say what precedes it. So the
 * paths of the registry interface, which has two mounts, appear once and keep their operation ids.
 */
const servers: Readonly<Record<Group, readonly unknown[]>> = {
  start: [{ url: '/' }],
  service: [apiServer],
  images: [apiServer],
  registry: [apiServer, rootServer],
  identity: [{ url: identityPrefix, description: 'The embedded identity service.' }],
  probes: [{ url: '/' }],
}

const groupMeanings: Readonly<Record<Group, string>> = {
  start: 'The page at the address of the server.',
  service: 'The administrative part: enable, disable, statistics.',
  images: 'Images: tags and their history.',
  registry: 'The OCI registry interface.',
  identity: 'The embedded identity service.',
  probes: 'Probes for monitoring and load balancers.',
}

const introduction = `A container image registry: the administrative part, and the OCI registry interface under \`/v2/\`.

The registry interface has two mounts: \`${apiPrefix}/v2/\`, and \`/v2/\` unless the setting
\`registry.root_mount\` is false. Both behave alike. Every \`Location\` and \`Link\` stays in the mount of the request.

\`{image}\` may contain slashes. The error body is an OciError under \`/v2/\` and an ErrorMessage elsewhere. Answers to HEAD
have no body. All answers have \`X-Request-Id\`, \`Docker-Distribution-Api-Version\` and \`X-Content-Type-Options: nosniff\`. If
the query of a request contains an API key, its answer has \`Cache-Control: no-store\` and \`Referrer-Policy: no-referrer\`. An
unknown path is answered with 404, or in the registry with 401 if the caller is anonymous. An unsupported method is
answered with 405 and \`Allow\`.`

/** The OpenAPI 3.1 description of the routes. `authUrl` is the address of another identity service, if there is one. */
export function buildDocument({ registry, service }: RouteTable, serverVersion: string, authUrl?: string): unknown {
  const operations = [
    ...registry.filter(isDocumented).map((route) => toOperation(route, true)),
    ...service.filter(isDocumented).map((route) => toOperation(route, false)),
  ].filter((operation) => isServed(operation, authUrl))
  const byPath = Map.groupBy(operations, ({ path }) => path)
  const describePath = (rows: readonly Operation[]) =>
    Object.fromEntries([
      ['servers', serversOf(rows[0], authUrl)],
      ...rows.flatMap((row) => describeOperation(row, registry)),
    ])
  return {
    openapi: '3.1.1',
    info: {
      title: 'Container Registry Service',
      version: '2.0.2',
      description: `${introduction}\n\nThis document is served by Berth ${serverVersion}.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [apiServer],
    security,
    tags: Object.entries(groupMeanings).map(([name, description]) => ({ name, description })),
    paths: Object.fromEntries([...byPath].map(([path, rows]) => [path, describePath(rows)])),
    components: { schemas, parameters, securitySchemes: securitySchemes(authUrl) },
  }
}

function isDocumented(route: Route): route is DocumentedRoute {
  return !('aliasOf' in route)
}

/**
 * Another identity service has no users, keys or signing keys here, but tokens are still fetched at the path of
 * spec.md.
 */
function isServed({ route }: Operation, authUrl: string | undefined): boolean {
  return authUrl === undefined || route.onlyWith !== 'embedded identity' || route.operationId === 'postToken'
}

function serversOf(operation: Operation | undefined, authUrl: string | undefined): readonly unknown[] {
  if (authUrl === undefined || operation?.route.operationId !== 'postToken')
    return servers[operation?.group ?? 'service']
  return [{ url: `${authUrl}${identityPrefix}`, description: 'The identity service of this registry.' }]
}

const precedence =
  'If a request has several credentials, the first in this order decides: Authorization, X-API-KEY, the query, the cookie.'

/** The two schemes that spec.md declares, and the other ways to send credentials that it lists. */
const securitySchemes = (authUrl = '') =>
  ({
    apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY', description: precedence },
    oauth2: {
      type: 'oauth2',
      description: `A token of the identity service, as a bearer token. ${precedence}`,
      flows: {
        implicit: {
          authorizationUrl: `${authUrl}${identityPrefix}/token/auth`,
          scopes: { 'dummy:dummy': 'A placeholder: rights come from roles, not from scopes.' },
        },
      },
    },
    bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
    basic: {
      type: 'http',
      scheme: 'basic',
      description:
        'The user name `apikey` with an API key as the password, or `bearer` with a token. Or the name of a user, with the password or an API key of that user.',
    },
    cookie: {
      type: 'apiKey',
      in: 'cookie',
      name: 'svc-auth',
      description:
        'A token. A request that changes something is refused with 403 if a page of another origin caused it.',
    },
    apiKeyQuery: {
      type: 'apiKey',
      in: 'query',
      name: 'apiKey',
      description: 'For callers that cannot set headers. The key appears in no log and in no answer.',
    },
  }) as const

/** One of them is enough, unless an operation says otherwise. */
const security: readonly unknown[] = Object.keys(securitySchemes()).map((name) => ({
  [name]: name === 'oauth2' ? ['dummy:dummy'] : [],
}))
