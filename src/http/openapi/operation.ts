import type { Refusal } from '../../oci/errors.ts'
import type { Right } from '../../ports/identity.ts'
import type { HeaderUse } from './headers.ts'
import type { ParameterName } from './parameters.ts'
import type { SchemaName } from './schemas.ts'

/** The interface that a path belongs to: what stands in front of it, and the form of its errors. */
export type Part = 'service' | 'identity' | 'probes' | 'registry' | 'start'

/** What a body is made of, by media type. `bytes`: anything at all. */
export type Content = Readonly<Record<string, SchemaName | 'bytes'>>

export interface DocumentedAnswer {
  readonly description: string
  readonly headers?: HeaderUse
  readonly content?: Content
}

/**
 * One operation as its users see it. What follows from other facts is not written down again: the statuses of refusals
 * (`error-body.ts` has them), the refusals that every known caller or every body brings with it, and the HEAD of a GET.
 */
export interface Operation {
  readonly operationId: string
  readonly part: Part
  readonly method: 'get' | 'put' | 'post' | 'patch' | 'delete'
  readonly path: `/${string}`
  readonly summary: string
  readonly description?: string
  /** Anyone, anyone with good credentials, or those with the right. */
  readonly caller: 'anyone' | 'known' | Right
  readonly parameters?: readonly ParameterName[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  readonly answers: Readonly<Record<number, DocumentedAnswer>>
  /** Its own ways to say no. */
  readonly refusals?: readonly Refusal[]
  /** It asks neither a store nor the identity service, so it does not fail with them. */
  readonly needsNothing?: true
  /** What GET can answer and HEAD cannot. */
  readonly notForHead?: { readonly statuses: readonly number[]; readonly refusals: readonly Refusal[] }
}

/** Rows of the route table that are another spelling of a documented operation. */
export interface Alias {
  readonly of: string
  readonly reason: string
}

const hasImage = (operation: Operation): boolean => operation.path.includes('{image}')
const isRight = (caller: Operation['caller']): boolean => caller !== 'anyone' && caller !== 'known'

/** All refusals of an operation: its own, and those that follow from what it is. */
export function refusalsOf(operation: Operation): readonly Refusal[] {
  const { caller, method, part, requestBody, refusals = [] } = operation
  const all: Refusal[] = ['host-invalid', 'uri-too-long', ...refusals]
  const isRead = method === 'get'
  if (operation.path.includes('{')) all.push(isRead && part === 'registry' ? 'path-unknown' : 'path-invalid')
  if (caller !== 'anyone') all.push('unauthenticated', 'credentials-invalid', 'too-many-failures')
  if (caller !== 'anyone' && method !== 'get') all.push('cross-site-request')
  if (isRight(caller)) all.push('denied')
  if (isRight(caller) && method !== 'get') all.push('read-only')
  if (isRight(caller) && part === 'registry') all.push('scope-insufficient', 'account-disabled')
  if (hasImage(operation)) all.push(isRead ? 'name-unknown' : 'name-invalid')
  if (requestBody !== undefined) all.push('content-encoding-unsupported', 'body-incomplete', 'body-too-slow')
  return all
}

/** `getBlob` -> `headBlob`: HEAD answers as GET does, without a body. */
export function headOf(operation: Operation): Operation {
  const { notForHead, refusals = [], answers, ...rest } = operation
  const kept = Object.entries(answers).filter(([status]) => !notForHead?.statuses.includes(Number(status)))
  return {
    ...rest,
    operationId: `head${operation.operationId.replace(/^get/, '').replace(/^[a-z]/, (first) => first.toUpperCase())}`,
    summary: `${operation.summary}: the headers alone`,
    refusals: refusals.filter((refusal) => !notForHead?.refusals.includes(refusal)),
    answers: Object.fromEntries(
      kept.map(([status, { description, headers = {} }]) => [status, { description, headers }]),
    ),
  }
}
