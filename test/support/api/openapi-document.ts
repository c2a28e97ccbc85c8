// The OpenAPI document as its readers see it, taken apart into operations that a test can ask for.
import { version } from '../../../src/app/version.ts'
import { buildDocument } from '../../../src/http/openapi/document.ts'
import { registryRoutes, serviceRoutes } from '../../../src/http/routes.ts'

export interface DocumentedResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly required: boolean; readonly schema: JsonSchema }>>
  readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema }>>
}

export type JsonSchema = Readonly<Record<string, unknown>>

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema: JsonSchema
}

interface PathOperation {
  readonly operationId: string
  readonly description?: string
  readonly security?: readonly unknown[]
  readonly 'x-required-right'?: string
  readonly parameters: readonly { readonly $ref: string }[]
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, unknown>> }
  readonly responses: Readonly<Record<string, DocumentedResponse>>
}

interface ServerEntry {
  readonly url: string
  readonly variables?: Readonly<Record<string, { readonly enum: readonly string[]; readonly default: string }>>
}

interface OpenApi {
  readonly openapi: string
  readonly info: { readonly version: string }
  readonly servers: readonly ServerEntry[]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly parameters: Readonly<Record<string, Parameter>>
    readonly securitySchemes: Readonly<Record<string, JsonSchema>>
  }
}

export interface DocumentedOperation extends Omit<PathOperation, 'parameters'> {
  readonly method: string
  /** As it stands in the document. */
  readonly path: string
  /** With what its servers put in front: every path that it answers at. */
  readonly fullPaths: readonly string[]
  readonly parameters: readonly Parameter[]
}

/** The document after a round trip through JSON, as clients get it. */
export const openApi: OpenApi = JSON.parse(
  JSON.stringify(buildDocument({ registry: registryRoutes, service: serviceRoutes }, version)),
)

export const operations: readonly DocumentedOperation[] = Object.entries(openApi.paths).flatMap(([path, item]) => {
  const { servers = openApi.servers, ...methods } = item as { servers?: readonly ServerEntry[] }
  return Object.entries(methods as Readonly<Record<string, PathOperation>>).map(([method, operation]) => ({
    ...operation,
    method: method.toUpperCase(),
    path,
    fullPaths: servers.map((server) => addressOf(server) + path),
    parameters: operation.parameters.map(resolveParameter),
  }))
})

function addressOf({ url, variables = {} }: ServerEntry): string {
  const filled = url.replaceAll(/\{(\w+)\}/g, (_, name: string) => variables[name]?.default ?? '')
  return filled.replace(/\/$/, '')
}

function resolveParameter({ $ref }: { readonly $ref: string }): Parameter {
  const parameter = openApi.components.parameters[$ref.replace('#/components/parameters/', '')]
  if (parameter === undefined) throw new Error(`${$ref} leads nowhere`)
  return parameter
}

/** The operation that a request is for, if the document has one. */
export function findOperation(method: string, path: string): DocumentedOperation | undefined {
  return operations.find(
    (operation) => operation.method === method && operation.fullPaths.some((full) => toPattern(full).test(path)),
  )
}

function toPattern(path: string): RegExp {
  const source = path
    .replaceAll('.', '\\.')
    .replaceAll('{image}', '.+')
    .replaceAll(/\{\w+\}/g, '[^/]+')
  return new RegExp(`^${source}$`)
}

export function operationOf(operationId: string): DocumentedOperation {
  const found = operations.find((operation) => operation.operationId === operationId)
  if (found === undefined) throw new Error(`the document has no operation ${operationId}`)
  return found
}

/** The schema with every `$ref` replaced by what it leads to. */
export function withoutRefs(schema: unknown): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('$ref' in value)) return value
    const target = openApi.components.schemas[String(value.$ref).replace('#/components/schemas/', '')]
    if (target === undefined) throw new Error(`${String(value.$ref)} leads nowhere`)
    return withoutRefs(target)
  })
}
