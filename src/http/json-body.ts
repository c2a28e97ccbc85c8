import { RegistryRefusal } from '../oci/errors.ts'
import { withoutParameters } from '../oci/media-types.ts'
import type { Exchange } from './exchange.ts'
import { readAtMost } from './request-body.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

export type JsonObject = Readonly<Record<string, unknown>>

/** A small body that must be a JSON object; where members are named, with no others. */
export async function readJsonObject(
  exchange: Exchange,
  bytesMax: number,
  members?: readonly string[],
): Promise<JsonObject> {
  const bytes = await readSmallBody(exchange, bytesMax, 'application/json')
  let body: unknown
  try {
    body = JSON.parse(utf8.decode(bytes))
  } catch {
    throw bodyInvalid('not JSON')
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw bodyInvalid('not a JSON object')
  const alien = Object.keys(body).find((name) => members !== undefined && !members.includes(name))
  if (alien !== undefined) throw bodyInvalid(`there is no member ${JSON.stringify(alien.slice(0, 64))} here`)
  return { ...body }
}

export async function readSmallBody(exchange: Exchange, bytesMax: number, contentType: string): Promise<Uint8Array> {
  if (withoutParameters(exchange.request.headers.get('content-type') ?? '') !== contentType) {
    throw bodyInvalid(`the content type must be ${contentType}`)
  }
  return readAtMost(exchange, bytesMax, () => new RegistryRefusal('body-invalid', { max: bytesMax }))
}

export function bodyInvalid(reason: string): RegistryRefusal {
  return new RegistryRefusal('body-invalid', { reason })
}

export function textOf(body: JsonObject, name: string): string {
  return optionalTextOf(body, name) ?? refuse(`${name} is needed`)
}

export function optionalTextOf(body: JsonObject, name: string): string | undefined {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : refuse(`${name} must be a text`)
}

export function optionalTextsOf(body: JsonObject, name: string): readonly string[] | undefined {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
    ? value
    : refuse(`${name} must be a list of texts`)
}

export function optionalFlagOf(body: JsonObject, name: string): boolean | undefined {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  return typeof value === 'boolean' ? value : refuse(`${name} must be true or false`)
}

function refuse(reason: string): never {
  throw bodyInvalid(reason)
}
