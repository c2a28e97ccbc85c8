import type { Answer } from '../answer.ts'
import type { Exchange } from '../exchange.ts'
import { apiPrefix } from '../mounts.ts'
import { json, type Route, type RouteTable } from '../route.ts'

/** `tableOf` is a function because this route is itself a part of the table. */
export function openApiRoute(tableOf: () => RouteTable): Route {
  const cached = new Map<string | undefined, Promise<Uint8Array>>()
  return {
    operationId: 'getOpenApi',
    method: 'GET',
    pattern: `${apiPrefix}/openapi.json`,
    access: 'anyone',
    summary: 'Get this document',
    hasNoDependencies: true,
    answers: { 200: { description: 'OpenAPI 3.1.', content: json('OpenApiDocument') } },
    handle: ({ app }) => getOpenApi(app.http, tableOf(), cached),
  }
}

/** The document is built at the first request, so that the start of the server does not wait for it. */
async function getOpenApi(
  { version, authUrl }: Exchange['app']['http'],
  table: RouteTable,
  cached: Map<string | undefined, Promise<Uint8Array>>,
): Promise<Answer> {
  const document = cached.get(authUrl) ?? serialise(table, version, authUrl)
  cached.set(authUrl, document)
  const bytes = await document
  return { status: 200, headers: { 'content-type': 'application/json' }, body: bytes, lengthBytes: bytes.length }
}

async function serialise(table: RouteTable, version: string, authUrl: string | undefined): Promise<Uint8Array> {
  const { buildDocument } = await import('./document.ts')
  return new TextEncoder().encode(JSON.stringify(buildDocument(table, version, authUrl)))
}
