import { forwardedFor, getJson, type JsonObject, ServiceFault } from './get-json.ts'

/** What the service says of a user name and a password. */
export type LoginReply =
  | { readonly kind: 'token'; readonly token: string; readonly lifetimeMs: number }
  | { readonly kind: 'refused' }
  /** The service does not take this question now, which says nothing of the password. */
  | { readonly kind: 'not-taken'; readonly fault: ServiceFault }

/** spec.md, "Obtaining a bearer token". */
const tokenPath = '/api/2021-02-21/token/auth'

/** The password is wrong, or the service has no logins by password. */
const refusals: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 422])

/** Rejects with `ServiceFault` when the service cannot tell. */
export async function askLogin(
  serviceUrl: string,
  login: { readonly username: string; readonly password: string },
  timeoutMs: number,
  clientAddress: string | undefined,
): Promise<LoginReply> {
  const { status, body } = await getJson(serviceUrl + tokenPath, forwardedFor(clientAddress), timeoutMs, login)
  if (body !== undefined) return readToken(body)
  if (refusals.has(status)) return { kind: 'refused' }
  const fault = new ServiceFault(`the login: answered ${status}`)
  if (status >= 400 && status < 500) return { kind: 'not-taken', fault }
  throw fault
}

function readToken({ access_token: token, expires_in: seconds }: JsonObject): LoginReply {
  if (typeof token !== 'string' || token === '') throw new ServiceFault('the login: an answer without a token')
  const lifetimeMs = typeof seconds === 'number' && seconds >= 0 ? seconds * 1000 : Number.POSITIVE_INFINITY
  return { kind: 'token', token, lifetimeMs }
}
