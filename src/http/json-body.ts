import { withoutParameters } from '../oci/media-types.ts'
import type { Exchange } from './exchange.ts'
import type { BodyOf, SchemaName } from './openapi/schemas.ts'
import { readAtMost } from './request-body.ts'
import { json, type RequestBody } from './route.ts'
import { bodyInvalid, fieldInvalid, parseStrictJson } from './strict-json.ts'

/** The request body of a route: what its documentation says, and what `readJson` accepts. */
export interface JsonBody<Name extends SchemaName> extends RequestBody {
  readonly required: true
  readonly content: { readonly 'application/json': Name }
  readonly bytesMax: number
}

export function jsonBody<Name extends SchemaName>(schema: Name, bytesMax: number): JsonBody<Name> {
  return { required: true, content: json(schema), bytesMax }
}

/** Reads the body and validates it with the schema that documents it. Some rules on texts are left to their parsers. */
export async function readJson<Name extends SchemaName>(
  exchange: Exchange,
  { content, bytesMax }: JsonBody<Name>,
): Promise<BodyOf<Name>> {
  const body = parseStrictJson(await readSmallBody(exchange, bytesMax, 'application/json'))
  // TypeBox takes about 100 ms and 15 MB to load. Only the first request with such a body pays for it.
  const { findBodyFault } = await import('./openapi/validation.ts')
  const fault = findBodyFault(content['application/json'], body)
  if (fault === undefined) return body as BodyOf<Name>
  throw fault.field === undefined ? bodyInvalid(fault.reason) : fieldInvalid(fault.field, fault.reason)
}

/** Reads the body for a parser that validates all of it. */
export async function readUncheckedJson<Name extends SchemaName>(
  exchange: Exchange,
  { bytesMax }: JsonBody<Name>,
): Promise<unknown> {
  return parseStrictJson(await readSmallBody(exchange, bytesMax, 'application/json'))
}

export async function readSmallBody(exchange: Exchange, bytesMax: number, contentType: string): Promise<Uint8Array> {
  if (withoutParameters(exchange.request.headers.get('content-type') ?? '') !== contentType) {
    throw bodyInvalid(`the Content-Type must be ${contentType}`)
  }
  return readAtMost(exchange, bytesMax, () => bodyInvalid(`must be at most ${bytesMax} bytes`))
}
