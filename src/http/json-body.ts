import { RegistryRefusal } from '../oci/errors.ts'
import { findJsonFault } from '../oci/json-scan.ts'
import { withoutParameters } from '../oci/media-types.ts'
import type { Exchange } from './exchange.ts'
import { readAtMost } from './request-body.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })
const depthMax = 32

export type JsonObject = Readonly<Record<string, unknown>>

export interface ExpectedMembers {
  /** The members that the body may have. Without it, others are ignored. */
  readonly members?: readonly string[]
  /** The members for which null means the same as absence. Elsewhere null is a value of the wrong type. */
  readonly nullable?: readonly string[]
}

/** A small body that must be a JSON object. Members that are null, and may be, are left out of the result. */
export async function readJsonObject(
  exchange: Exchange,
  bytesMax: number,
  { members, nullable = [] }: ExpectedMembers = {},
): Promise<JsonObject> {
  const body = parseJson(await readSmallBody(exchange, bytesMax, 'application/json'))
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw bodyInvalid('must be a JSON object')
  const unknown = members && Object.keys(body).find((name) => !members.includes(name))
  if (unknown !== undefined) {
    throw fieldInvalid(showName(unknown), `is not a member of this body, which can have ${members?.join(', ')}`)
  }
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null || !nullable.includes(name)))
}

function parseJson(bytes: Uint8Array): unknown {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw bodyInvalid('must be UTF-8')
  }
  const fault = findJsonFault(text, depthMax)
  // Of a member given twice, one reader takes the first and another the last.
  if (fault?.kind === 'duplicate key') throw fieldInvalid(showName(fault.key), 'must be given once')
  if (fault?.kind === 'too deep') throw bodyInvalid(`must not be nested deeper than ${depthMax}`)
  try {
    return JSON.parse(text)
  } catch {
    throw bodyInvalid('must be JSON')
  }
}

export async function readSmallBody(exchange: Exchange, bytesMax: number, contentType: string): Promise<Uint8Array> {
  if (withoutParameters(exchange.request.headers.get('content-type') ?? '') !== contentType) {
    throw bodyInvalid(`the Content-Type must be ${contentType}`)
  }
  return readAtMost(exchange, bytesMax, () => bodyInvalid(`must be at most ${bytesMax} bytes`))
}

/** The body as a whole is at fault. */
export function bodyInvalid(reason: string): RegistryRefusal {
  return new RegistryRefusal('body-invalid', { reason })
}

/** One field is at fault: `roles[1]`. The reason goes on from its name: `must be a string`. */
export function fieldInvalid(field: string, reason: string): RegistryRefusal {
  return new RegistryRefusal('body-invalid', { field, reason })
}

export function textOf(body: JsonObject, name: string): string {
  return optionalTextOf(body, name) ?? refuse(name, 'is required')
}

export function optionalTextOf(body: JsonObject, name: string): string | undefined {
  const value = body[name]
  if (value === undefined || typeof value === 'string') return value
  return refuse(name, 'must be a string')
}

export function optionalTextsOf(body: JsonObject, name: string): readonly string[] | undefined {
  const value = body[name]
  if (value === undefined) return undefined
  if (!Array.isArray(value)) return refuse(name, 'must be an array of strings')
  return value.map((one: unknown, index) =>
    typeof one === 'string' ? one : refuse(`${name}[${index}]`, 'must be a string'),
  )
}

export function optionalFlagOf(body: JsonObject, name: string): boolean | undefined {
  const value = body[name]
  if (value === undefined || typeof value === 'boolean') return value
  return refuse(name, 'must be true or false')
}

function refuse(field: string, reason: string): never {
  throw fieldInvalid(field, reason)
}

/** The name of a member as an error message shows it. */
function showName(name: string): string {
  return /^\w{1,64}$/.test(name) ? name : JSON.stringify(name.slice(0, 64))
}
