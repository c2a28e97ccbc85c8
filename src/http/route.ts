import type { Refusal } from '../oci/errors.ts'
import type { Awaitable } from '../ports/awaitable.ts'
import type { Right } from '../ports/identity.ts'
import type { Answer } from './answer.ts'
import type { CallerExchange, Exchange, RegistryExchange, RepositoryExchange } from './exchange.ts'
import type { HeaderUse } from './openapi/headers.ts'
import type { ParameterName } from './openapi/parameters.ts'
import type { SchemaName } from './openapi/schemas.ts'

/** `GET` includes HEAD everywhere. */
export type Method = 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'

/** The schema of a body by media type. `bytes` means that any content is allowed. */
export type Content = Readonly<Record<string, SchemaName | 'bytes'>>

export interface RequestBody {
  readonly required: boolean
  readonly content: Content
}

export interface DocumentedAnswer {
  readonly description: string
  readonly headers?: HeaderUse
  readonly content?: Content
}

/**
 * The part of a route that only its documentation needs. `openapi/operations.ts` adds what follows from the rest of the
 * route: the path parameters, the statuses of refusals, the refusals that every caller or every body can cause, and the
 * HEAD of a GET.
 */
export interface Documentation {
  readonly summary: string
  readonly description?: string
  /** Query parameters and headers. Path parameters are listed only where their meaning differs from the usual one. */
  readonly parameters?: readonly ParameterName[]
  readonly requestBody?: RequestBody
  readonly answers: Readonly<Record<number, DocumentedAnswer>>
  /** The refusals that are special to this route. */
  readonly refusals?: readonly Refusal[]
  /** Without this configuration the route answers 404. */
  readonly onlyWith?: 'embedded identity' | 'bearer challenge'
  /** The handler calls no store and no identity service, so it cannot fail because of them. */
  readonly hasNoDependencies?: true
  /** The answers of GET that HEAD cannot give. */
  readonly notForHead?: { readonly statuses: readonly number[]; readonly refusals: readonly Refusal[] }
}

/**
 * A second path for a documented route. The document shows only the first, with the reason added to its description.
 */
interface Alias {
  readonly aliasOf: string
  readonly reason: string
}

interface Address {
  /** Unique, and the name of the route in the log. The nine operations of spec.md have the names that spec.md gives. */
  readonly operationId: string
  readonly method: Method
  /** For routes of the registry interface: the path below the mount. `{name}` may contain slashes. */
  readonly pattern: string
}

/** Every route says who may call it. A route without `access` does not compile. */
type Handling =
  | { readonly access: 'anyone'; readonly handle: (exchange: Exchange) => Awaitable<Answer> }
  | {
      readonly access: 'known caller'
      readonly right: Right | undefined
      readonly handle: (exchange: CallerExchange) => Awaitable<Answer>
    }
  | {
      readonly access: 'enabled account'
      readonly right: Right
      readonly handle: (exchange: RegistryExchange) => Awaitable<Answer>
    }
  | {
      readonly access: 'repository'
      readonly right: Right
      readonly handle: (exchange: RepositoryExchange) => Awaitable<Answer>
    }

/** Everything about one operation: its address, who may call it, its handler and its documentation. */
export type DocumentedRoute = Address & Handling & Documentation
export type AliasRoute = Address & Handling & Alias
export type Route = DocumentedRoute | AliasRoute

export type RouteOf<Access extends Route['access']> = Extract<Route, { access: Access }>

export interface RouteTable {
  /** Routes below each mount of the registry interface. */
  readonly registry: readonly Route[]
  /** Routes at fixed paths. */
  readonly service: readonly Route[]
}

export function json<Name extends SchemaName>(schema: Name): { readonly 'application/json': Name } {
  return { 'application/json': schema }
}
