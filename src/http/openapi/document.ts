import { apiPrefix, identityPrefix } from '../mounts.ts'
import { apiKeyOperations } from './identity/api-keys.ts'
import { meOperations } from './identity/me.ts'
import { tokenOperations } from './identity/token.ts'
import { userOperations } from './identity/users.ts'
import { type Alias, headOf, type Operation, type Part } from './operation.ts'
import { parameters } from './parameters.ts'
import { healthOperations } from './probes/health.ts'
import { toContent, toResponses } from './responses.ts'
import { schemas } from './schemas.ts'
import { security, securitySchemes } from './security.ts'
import { serviceOperations } from './service/service.ts'
import { startPageOperations } from './start-page.ts'
import { baseOperations } from './v2/base.ts'
import { blobOperations } from './v2/blobs.ts'
import { catalogOperations } from './v2/catalog.ts'
import { manifestOperations } from './v2/manifests.ts'
import { referrerOperations } from './v2/referrers.ts'
import { scopedTokenOperations } from './v2/scoped-token.ts'
import { tagOperations } from './v2/tags.ts'
import { uploadAliases, uploadOperations } from './v2/uploads.ts'

const operations: readonly Operation[] = [
  ...startPageOperations,
  ...serviceOperations,
  ...baseOperations,
  ...catalogOperations,
  ...manifestOperations,
  ...tagOperations,
  ...referrerOperations,
  ...blobOperations,
  ...uploadOperations,
  ...scopedTokenOperations,
  ...tokenOperations,
  ...meOperations,
  ...userOperations,
  ...apiKeyOperations,
  ...healthOperations,
]

/** Routes that the document leaves out on purpose, because another operation stands for them. */
export const aliases: Readonly<Record<string, Alias>> = { ...uploadAliases }

// spec.md, 9: "a single value, `2023-12-28`, which is also the default".
const version = apiPrefix.slice('/api/'.length)
const apiServer = {
  url: '/api/{version}',
  description: 'The contract.',
  variables: { version: { enum: [version], default: version } },
}
const rootServer = { url: '/', description: 'The same registry at the root, where most clients look for it.' }

/**
 * Paths stand as in spec.md, relative to `/api/{version}`, and a server says what is in front of them: so the registry's
 * paths, which answer in two mounts, stand here once and keep their operation ids.
 */
const servers: Readonly<Record<Part, readonly unknown[]>> = {
  service: [apiServer],
  registry: [apiServer, rootServer],
  identity: [{ url: identityPrefix, description: 'The identity service, where it is the embedded one.' }],
  probes: [{ url: '/' }],
  start: [{ url: '/' }],
}

const partMeanings: Readonly<Record<Part, string>> = {
  start: 'For whoever opens the address of the server.',
  service: 'The administrative part: on, off, statistics.',
  registry: 'The OCI registry interface.',
  identity: 'The embedded identity service.',
  probes: 'For those who look after the process.',
}

const introduction = `A container image registry: the administrative part, and the OCI registry interface under \`/v2/\`.

The registry interface answers in two mounts: under \`${apiPrefix}/v2/\`, and, unless \`registry.root_mount\` is false, at
\`/v2/\`. Both are the same; every \`Location\` and \`Link\` stays in the mount that its request came in on.

\`{image}\` may hold slashes. Errors are an OciError under \`/v2/\` and an ErrorMessage elsewhere; HEAD answers never have a
body. All answers have \`X-Request-Id\`, \`Docker-Distribution-Api-Version\` and \`X-Content-Type-Options: nosniff\`; those to
requests with a key in the query have \`Cache-Control: no-store\` and \`Referrer-Policy: no-referrer\`. A path that is none
of these is 404 (in the registry 401 for strangers), a method that a path has not is 405 with \`Allow\`.`

/** The whole description of the interface: OpenAPI 3.1. */
export function buildDocument(serverVersion: string, authUrl?: string): unknown {
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
    tags: Object.entries(partMeanings).map(([name, description]) => ({ name, description })),
    paths: toPaths(authUrl),
    components: {
      schemas,
      parameters,
      securitySchemes: securitySchemes(authUrl),
    },
  }
}

/** Users, keys and signing keys are at these addresses only where the identity service is the embedded one. */
const ofEmbedded: ReadonlySet<string> = new Set(
  [...userOperations, ...apiKeyOperations, ...tokenOperations].map(({ operationId }) => operationId),
)

function toPaths(authUrl: string | undefined): Readonly<Record<string, unknown>> {
  const isHere = ({ operationId }: Operation) => authUrl === undefined || !ofEmbedded.has(operationId)
  const tokens = tokenOperations.filter(({ operationId }) => authUrl !== undefined && operationId === 'postToken')
  const byPath = Map.groupBy([...operations.filter(isHere), ...tokens], (operation) => operation.path)
  return Object.fromEntries(
    [...byPath].map(([path, rows]) => [
      path,
      Object.fromEntries([['servers', serversOf(rows[0], authUrl)], ...rows.flatMap(withHead)]),
    ]),
  )
}

function serversOf(operation: Operation | undefined, authUrl: string | undefined): readonly unknown[] {
  if (authUrl === undefined || operation?.operationId !== 'postToken') return servers[operation?.part ?? 'service']
  return [{ url: `${authUrl}${identityPrefix}`, description: 'The identity service of this registry.' }]
}

function withHead(operation: Operation): [string, unknown][] {
  const own: [string, unknown] = [operation.method, toOperation(operation, true)]
  return operation.method === 'get' ? [own, ['head', toOperation(headOf(operation), false)]] : [own]
}

function toOperation(operation: Operation, hasBody: boolean): unknown {
  const { operationId, part, summary, description, caller, requestBody } = operation
  const spellings = Object.values(aliases).filter((alias) => alias.of === operationId)
  const words = [description, ...spellings.map((alias) => alias.reason)].filter((text) => text !== undefined)
  return {
    operationId,
    tags: [part],
    summary,
    ...(words.length > 0 ? { description: words.join(' ') } : {}),
    ...(caller === 'anyone' ? { security: [] } : {}),
    ...(caller === 'anyone' || caller === 'known' ? {} : { 'x-required-right': caller }),
    parameters: (operation.parameters ?? []).map((name) => ({ $ref: `#/components/parameters/${name}` })),
    ...(requestBody === undefined
      ? {}
      : { requestBody: { required: requestBody.required, content: toContent(requestBody.content) } }),
    responses: toResponses(operation, hasBody),
  }
}
