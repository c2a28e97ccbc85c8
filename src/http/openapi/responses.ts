import { type Refusal, refusalWords } from '../../oci/errors.ts'
import { errorTable } from '../error-body.ts'
import { type HeaderName, type HeaderUse, headers } from './headers.ts'
import { type Content, type DocumentedAnswer, type Operation, refusalsOf } from './operation.ts'
import { schemaRef } from './schemas.ts'

/** Headers that come with a refusal; see `refusalHeaders` in error-body.ts. */
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

/** All answers of an operation by status, as the document has them. */
export function toResponses(operation: Operation, hasBody: boolean): Readonly<Record<string, unknown>> {
  const { answers, needsNothing } = operation
  const documented = new Map<number, DocumentedAnswer>()
  for (const [status, answer] of Object.entries(answers)) documented.set(Number(status), answer)
  const errors: Content = { 'application/json': operation.part === 'registry' ? 'OciError' : 'ErrorMessage' }
  for (const [status, refusals] of byStatus(refusalsOf(operation))) {
    documented.set(status, {
      description: refusals.map(describe).join('; ') + '.',
      headers: Object.assign({}, ...refusals.map((refusal) => refusalHeaders[refusal] ?? {})),
      content: errors,
    })
  }
  if (needsNothing === undefined) {
    const refused = documented.get(503)?.description
    documented.set(500, { description: 'A mistake of ours; the log has more under the request id.', content: errors })
    documented.set(503, {
      description: ['A store or the identity service does not answer.', refused].filter(Boolean).join(' '),
      headers: { 'Retry-After': 'always' },
      content: errors,
    })
  }
  const inOrder = [...documented].sort(([one], [other]) => one - other)
  return Object.fromEntries(inOrder.map(([status, answer]) => [status, toResponse(answer, hasBody)]))
}

function byStatus(refusals: readonly Refusal[]): ReadonlyMap<number, readonly Refusal[]> {
  return Map.groupBy(new Set(refusals), (refusal) => errorTable[refusal].status)
}

function describe(refusal: Refusal): string {
  return `${errorTable[refusal].code}: ${refusalWords[refusal]}`
}

function toResponse(answer: DocumentedAnswer, hasBody: boolean): unknown {
  const { description, headers: uses = {}, content } = answer
  return {
    description,
    ...(Object.keys(uses).length > 0 ? { headers: toHeaders(uses) } : {}),
    ...(hasBody && content !== undefined ? { content: toContent(content) } : {}),
  }
}

function toHeaders(uses: HeaderUse): unknown {
  const documented = Object.entries(headers).filter(([name]) => name in uses)
  return Object.fromEntries(
    documented.map(([name, header]) => [name, { required: uses[name as HeaderName] === 'always', ...header }]),
  )
}

export function toContent(content: Content): unknown {
  const entries = Object.entries(content)
  return Object.fromEntries(
    entries.map(([mediaType, body]) => [mediaType, body === 'bytes' ? {} : { schema: schemaRef(body) }]),
  )
}
