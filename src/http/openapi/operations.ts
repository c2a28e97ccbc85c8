import { type Refusal, refusalWords } from '../../oci/errors.ts'
import { errorTable } from '../error-body.ts'
import { apiPrefix, identityPrefix, repositoriesPath } from '../mounts.ts'
import type { Content, DocumentedAnswer, DocumentedRoute, Route } from '../route.ts'
import { type HeaderName, type HeaderUse, headers } from './headers.ts'
import { type ParameterName, parameters } from './parameters.ts'
import { type SchemaName, schemaRef } from './schemas.ts'

/** The group that an operation is listed in. It decides the servers of its path and the form of its errors. */
export type Group = 'start' | 'service' | 'images' | 'registry' | 'identity' | 'probes'

/** A route as the document shows it. */
export interface Operation {
  readonly group: Group
  readonly path: string
  readonly route: DocumentedRoute
}

/** spec.md names two of the path parameters differently from the distribution-spec, whose names the patterns use. */
const namesOfSpec: Readonly<Record<string, string>> = { name: 'image', reference: 'tag' }

export function toOperation(route: DocumentedRoute, isRegistry: boolean): Operation {
  const pattern = route.pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => `{${namesOfSpec[name] ?? name}}`)
  if (isRegistry) return { group: 'registry', path: `/v2${pattern}`, route }
  if (pattern.startsWith(apiPrefix)) {
    const group = pattern.startsWith(repositoriesPath) ? 'images' : 'service'
    return { group, path: pattern.slice(apiPrefix.length), route }
  }
  if (pattern.startsWith(identityPrefix))
    return { group: 'identity', path: pattern.slice(identityPrefix.length), route }
  return { group: pattern === '/' ? 'start' : 'probes', path: pattern, route }
}

/** The method and the description of the operation; for a GET also those of its HEAD. */
export function describeOperation(operation: Operation, aliases: readonly Route[]): [string, unknown][] {
  const { route } = operation
  const own: [string, unknown] = [route.method.toLowerCase(), describe(operation, aliases, true)]
  return route.method === 'GET' ? [own, ['head', describe(headOf(operation), aliases, false)]] : [own]
}

function describe({ group, path, route }: Operation, aliases: readonly Route[], hasBody: boolean): unknown {
  const { operationId, summary, requestBody } = route
  const reasons = aliases.flatMap((alias) => ('aliasOf' in alias && alias.aliasOf === operationId ? alias.reason : []))
  const description = [route.description ?? [], ...reasons].flat().join(' ')
  const right = route.access === 'anyone' ? undefined : route.right
  return {
    operationId,
    tags: [group],
    summary,
    ...(description === '' ? {} : { description }),
    ...(route.access === 'anyone' ? { security: [] } : {}),
    ...(right === undefined ? {} : { 'x-required-right': right }),
    parameters: parametersOf(path, route).map((name) => ({ $ref: `#/components/parameters/${name}` })),
    ...(requestBody === undefined
      ? {}
      : { requestBody: { required: requestBody.required, content: describeContent(requestBody.content) } }),
    responses: describeResponses({ group, path, route }, hasBody),
  }
}

/** Path parameters first, in the order of the path. */
function parametersOf(path: string, { parameters: listed = [] }: DocumentedRoute): readonly ParameterName[] {
  const isInPath = (name: ParameterName) => parameters[name].in === 'path'
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    const special = listed.find((other) => isInPath(other) && parameters[other].name === name)
    return special ?? (name as ParameterName)
  })
  return [...inPath, ...listed.filter((name) => !isInPath(name))]
}

/** `getBlob` becomes `headBlob`. HEAD answers like GET, without a body. */
function headOf({ route, ...rest }: Operation): Operation {
  const { notForHead, refusals = [], answers } = route
  const kept = Object.entries(answers).filter(([status]) => !notForHead?.statuses.includes(Number(status)))
  const head = {
    ...route,
    operationId: `head${route.operationId.replace(/^get/, '').replace(/^[a-z]/, (first) => first.toUpperCase())}`,
    summary: `${route.summary}: the headers alone`,
    refusals: refusals.filter((refusal) => !notForHead?.refusals.includes(refusal)),
    answers: Object.fromEntries(kept),
  }
  return { ...rest, route: head }
}

/** All refusals of an operation: those that its route lists, and those that follow from the rest of the route. */
function refusalsOf({ group, path, route }: Operation): ReadonlySet<Refusal> {
  const { access, requestBody, refusals = [], onlyWith } = route
  const all: Refusal[] = ['host-invalid', 'uri-too-long', ...refusals]
  const isRead = route.method === 'GET'
  const hasRight = access !== 'anyone' && route.right !== undefined
  if (onlyWith !== undefined) all.push('route-unknown')
  if (path.includes('{')) all.push(isRead && group === 'registry' ? 'path-unknown' : 'path-invalid')
  if (access !== 'anyone') all.push('unauthenticated', 'credentials-invalid', 'too-many-failures')
  if (access !== 'anyone' && !isRead) all.push('cross-site-request')
  if (hasRight) all.push('denied')
  if (hasRight && !isRead) all.push('read-only')
  if (hasRight && group === 'registry') all.push('scope-insufficient')
  if (access === 'enabled account' || access === 'repository') all.push('account-disabled')
  if (access === 'repository') all.push(isRead ? 'name-unknown' : 'name-invalid')
  if (requestBody !== undefined) all.push('content-encoding-unsupported', 'body-incomplete', 'body-too-slow')
  return new Set(all)
}

/** The headers that come with a refusal; `refusalHeaders` in error-body.ts sets them. */
const refusalHeaders: Readonly<Partial<Record<Refusal, HeaderUse>>> = {
  unauthenticated: { 'WWW-Authenticate': 'always' },
  'credentials-invalid': { 'WWW-Authenticate': 'always' },
  'scope-insufficient': { 'WWW-Authenticate': 'always' },
  'login-invalid': { 'WWW-Authenticate': 'always' },
  'range-unsatisfiable': { 'Content-Range': 'always' },
  'upload-out-of-order': { Location: 'sometimes', Range: 'sometimes' },
  'blob-in-use': { Allow: 'always' },
  'manifest-in-use': { Allow: 'always' },
  'too-many-failures': { 'Retry-After': 'always' },
  'too-many-uploads': { 'Retry-After': 'always' },
}

/** All answers of an operation by status. */
function describeResponses(operation: Operation, hasBody: boolean): Readonly<Record<string, unknown>> {
  const { group, route } = operation
  const answers = new Map<number, DocumentedAnswer>()
  for (const [status, answer] of Object.entries(route.answers)) answers.set(Number(status), answer)
  const content: Content = { 'application/json': group === 'registry' ? 'OciError' : 'ErrorMessage' }
  for (const [status, refusals] of Map.groupBy(refusalsOf(operation), (refusal) => errorTable[refusal].status)) {
    answers.set(status, {
      description: `${refusals.map((refusal) => `${errorTable[refusal].code}: ${refusalWords[refusal]}`).join('; ')}.`,
      headers: Object.assign({}, ...refusals.map((refusal) => refusalHeaders[refusal] ?? {})),
      content,
    })
  }
  if (route.hasNoDependencies === undefined) {
    const refused = answers.get(503)?.description
    answers.set(500, { description: 'A bug in the server. Its log has the details under the request id.', content })
    answers.set(503, {
      description: ['A store or the identity service is unavailable.', refused].filter(Boolean).join(' '),
      headers: { 'Retry-After': 'always' },
      content,
    })
  }
  const inOrder = [...answers].sort(([one], [other]) => one - other)
  return Object.fromEntries(inOrder.map(([status, answer]) => [status, describeAnswer(answer, hasBody)]))
}

function describeAnswer({ description, headers: uses = {}, content }: DocumentedAnswer, hasBody: boolean): unknown {
  return {
    description,
    ...(Object.keys(uses).length > 0 ? { headers: describeHeaders(uses) } : {}),
    ...(hasBody && content !== undefined ? { content: describeContent(content) } : {}),
  }
}

function describeHeaders(uses: HeaderUse): unknown {
  const used = Object.entries(headers).filter(([name]) => name in uses)
  return Object.fromEntries(
    used.map(([name, header]) => [name, { required: uses[name as HeaderName] === 'always', ...header }]),
  )
}

function describeContent(content: Content): unknown {
  return Object.fromEntries(
    Object.entries(content).map(([mediaType, body]: [string, SchemaName | 'bytes']) => [
      mediaType,
      body === 'bytes' ? {} : { schema: schemaRef(body) },
    ]),
  )
}
