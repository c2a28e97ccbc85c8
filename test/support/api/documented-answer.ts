// Holds a real answer to what the OpenAPI document says of it.
import { Check, Errors } from 'typebox/value'
import { type DocumentedResponse, findOperation, type JsonSchema, withoutRefs } from './openapi-document.ts'

/** An answer whose body has been read. */
export interface ReadAnswer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  readonly text: string
}

/** On all answers; the document's introduction names those that are ours. */
const usual = new Set([
  'connection',
  'content-length',
  'content-type',
  'date',
  'docker-distribution-api-version',
  'transfer-encoding',
  'x-content-type-options',
  'x-request-id',
])
const whenKeyInQuery = new Set(['cache-control', 'referrer-policy'])

/** All that is wrong with the answer by the document; nothing if the document has no such operation. */
export function findContradictions(method: string, target: string, reply: ReadAnswer): readonly string[] {
  const [path = '', query = ''] = target.split('?')
  const operation = findOperation(method, path)
  if (operation === undefined) return []
  const documented = operation.responses[reply.status]
  if (documented === undefined) return [`${operation.operationId} has no status ${reply.status}: ${reply.text}`]
  const faults = [
    ...headerFaults(documented, reply.headers, query.includes('apiKey=')),
    ...(method === 'HEAD' ? emptyFaults(reply) : bodyFaults(documented, reply)),
  ]
  return faults.map((fault) => `${operation.operationId} ${reply.status}: ${fault}`)
}

function headerFaults({ headers = {} }: DocumentedResponse, actual: Headers, hasKeyInQuery: boolean): string[] {
  const faults: string[] = []
  const known = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  for (const [name, { required, schema }] of Object.entries(headers)) {
    const value = actual.get(name)
    if (value === null && required) faults.push(`the header ${name} is missing`)
    if (value !== null) faults.push(...schemaFaults(schema, schema['type'] === 'integer' ? Number(value) : value, name))
  }
  for (const name of actual.keys()) {
    const isExpected = known.has(name) || usual.has(name) || (hasKeyInQuery && whenKeyInQuery.has(name))
    if (!isExpected) faults.push(`the header ${name} is not documented`)
  }
  return faults
}

function emptyFaults(reply: ReadAnswer): string[] {
  return reply.bytes.length === 0 ? [] : ['there must be no body']
}

function bodyFaults({ content }: DocumentedResponse, reply: ReadAnswer): string[] {
  const type = reply.headers.get('content-type')
  if (content === undefined)
    return [...emptyFaults(reply), ...(type === null ? [] : [`content type ${type} of nothing`])]
  const body = type === null ? undefined : content[type]
  if (body === undefined) return [`content type ${type} is not one of ${Object.keys(content).join(', ')}`]
  return body.schema === undefined ? [] : schemaFaults(body.schema, JSON.parse(reply.text), 'body')
}

export function schemaFaults(schema: JsonSchema, value: unknown, what: string): string[] {
  const whole = withoutRefs(schema)
  if (Check(whole, value)) return []
  return [`${what} does not fit its schema: ${JSON.stringify(Errors(whole, value)).slice(0, 500)}`]
}
