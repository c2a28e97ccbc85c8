import type { Credential } from '../../ports/identity.ts'
import { forwardedFor, getJson, type JsonObject, ServiceFault } from './get-json.ts'
import { readRoles } from './me-answer.ts'

/** What `/me` can be asked with. */
export type PlainCredential = Exclude<Credential, { kind: 'login' }>

/** What the service says of a credential. */
export type MeReply =
  | { readonly kind: 'known'; readonly answer: JsonObject; readonly roles: readonly string[] }
  | { readonly kind: 'unknown' }
  /** It will not have this one question, which says nothing of the credential, and nothing of other questions. */
  | { readonly kind: 'not-taken'; readonly fault: ServiceFault }

/** spec.md, "the identity service". */
const mePath = '/api/2021-02-21/me'

/** Rejects with `ServiceFault` when the service cannot tell. */
export async function askMe(
  serviceUrl: string,
  credential: PlainCredential,
  timeoutMs: number,
  clientAddress: string | undefined,
): Promise<MeReply> {
  const { status, body } = await getJson(
    serviceUrl + mePath,
    { ...headersFor(credential), ...forwardedFor(clientAddress) },
    timeoutMs,
  )
  if (status === 401 || status === 403) return { kind: 'unknown' }
  if (body === undefined) {
    const fault = new ServiceFault(`answered ${status}`)
    // Anybody can send what provokes one of these (429 too: for an address, or a key that is tried too often), and must
    // not get the service taken for dead by it.
    if (status >= 400 && status < 500) return { kind: 'not-taken', fault }
    throw fault
  }
  const roles = readRoles(body)
  if (roles === undefined) throw new ServiceFault('an answer without a list of roles')
  return { kind: 'known', answer: body, roles }
}

function headersFor({ kind, secret }: PlainCredential): Record<string, string> {
  return kind === 'api-key' ? { 'x-api-key': secret } : { authorization: `Bearer ${secret}` }
}
