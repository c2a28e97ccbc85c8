import type { Credential } from '../../ports/identity.ts'
import { type JsonObject, type JsonResponse, requestJson, ServiceFault } from './json-request.ts'
import { readRoles } from './me-response.ts'

// The two requests to the identity service (spec.md, "the identity service"). Both reject with `ServiceFault` if the service
// cannot tell whether the credential is valid.

const mePath = '/api/2021-02-21/me'
const tokenPath = '/api/2021-02-21/token/auth'

/** A credential that `/me` accepts. */
export type PlainCredential = Exclude<Credential, { kind: 'login' }>

/**
 * The service refuses this one request with a status that says nothing about the credential or about the service: 429, for
 * example. A client can provoke it, so it must not open the circuit breaker.
 */
interface Refused {
  readonly kind: 'refused'
  readonly fault: ServiceFault
}

interface Invalid {
  readonly kind: 'invalid'
}

export type MeReply =
  | { readonly kind: 'valid'; readonly answer: JsonObject; readonly roles: readonly string[] }
  | Invalid
  | Refused

export type LoginReply =
  | { readonly kind: 'valid'; readonly token: string; readonly lifetimeMs: number }
  | Invalid
  | Refused

const invalidCredential: ReadonlySet<number> = new Set([401, 403])

/** The password is wrong, or the service has no logins by password. */
const invalidLogin: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 422])

export async function requestMe(
  serviceUrl: string,
  { kind, secret }: PlainCredential,
  timeoutMs: number,
  clientAddress: string | undefined,
): Promise<MeReply> {
  const headers: Record<string, string> =
    kind === 'api-key' ? { 'x-api-key': secret } : { authorization: `Bearer ${secret}` }
  const response = await requestJson(serviceUrl + mePath, { headers, timeoutMs, clientAddress })
  if (response.body === undefined) return readFailure(response, invalidCredential, 'answered')
  const roles = readRoles(response.body)
  if (roles === undefined) throw new ServiceFault('an answer without a list of roles')
  return { kind: 'valid', answer: response.body, roles }
}

/** Exchanges a user name and a password for a token. */
export async function requestLogin(
  serviceUrl: string,
  posted: { readonly username: string; readonly password: string },
  timeoutMs: number,
  clientAddress: string | undefined,
): Promise<LoginReply> {
  const response = await requestJson(serviceUrl + tokenPath, { posted, timeoutMs, clientAddress })
  if (response.body === undefined) return readFailure(response, invalidLogin, 'the login: answered')
  const { access_token: token, expires_in: seconds } = response.body
  if (typeof token !== 'string' || token === '') throw new ServiceFault('the login: an answer without a token')
  const lifetimeMs = typeof seconds === 'number' && seconds >= 0 ? seconds * 1000 : Number.POSITIVE_INFINITY
  return { kind: 'valid', token, lifetimeMs }
}

function readFailure({ status }: JsonResponse, invalid: ReadonlySet<number>, prefix: string): Invalid | Refused {
  if (invalid.has(status)) return { kind: 'invalid' }
  const fault = new ServiceFault(`${prefix} ${status}`)
  if (status >= 400 && status < 500) return { kind: 'refused', fault }
  throw fault
}
