import { isUserName } from '../identity/names.ts'
import { type Refusal, RegistryRefusal } from '../oci/errors.ts'
import type { Principal } from '../ports/identity.ts'
import type { Deed } from '../registry/audit.ts'
import type { Answer } from './answer.ts'
import { errorTable } from './error-body.ts'
import type { Application, Exchange } from './exchange.ts'
import type { Peers } from './peers.ts'
import type { RequestContext } from './request-context.ts'
import type { Route } from './route.ts'

// Which requests get into the audit log. The paths of requests do, but not their queries, headers and bodies.

const failedLogins: ReadonlySet<Refusal> = new Set(['credentials-invalid', 'too-many-failures'])

/**
 * Records a change that has succeeded, before its answer is sent. Changes of content are not recorded here; see the port
 * `Audit`.
 */
export async function recordChange(
  { app, peers, request, target, path }: Exchange,
  route: Route,
  principal: Principal,
  answer: Answer,
): Promise<Answer> {
  const { location } = answer.headers instanceof Headers ? {} : answer.headers
  await app.audit.record({
    ...callerOf(principal),
    address: peers.clientOf(request),
    action: route.operationId,
    // What the request has created.
    target: location ?? target.path,
    repository: path['name'],
    outcome: 'done',
    reason: undefined,
  })
  return answer
}

/** Notes a request with bad credentials, or one that the caller had no right to. */
export function noteRefusal(
  { audit }: Pick<Application, 'audit'>,
  peers: Peers,
  error: unknown,
  context: RequestContext,
) {
  if (!(error instanceof RegistryRefusal)) return
  const { refusal } = error
  const { principal, request, matched, target } = context
  const address = peers.clientOf(request)
  if (failedLogins.has(refusal)) {
    const credential = context.presented?.credential
    const claimed = credential?.kind === 'login' ? credential.userName : undefined
    audit.noteRefusal(failedLogin(refusal, address, claimed))
  } else if (errorTable[refusal].status === 403) {
    audit.noteRefusal({
      ...callerOf(principal),
      address,
      action: matched?.route.operationId ?? 'unknown',
      target: target.path,
      repository: matched?.values['name'],
      outcome: 'refused',
      reason: refusal,
    })
  }
}

/** Notes that a caller got a token. */
export function noteLogin({ app, peers, request }: Exchange, caller: Caller): void {
  app.audit.noteLogin({
    ...callerOf(caller),
    address: peers.clientOf(request),
    action: 'login',
    target: undefined,
    repository: undefined,
    outcome: 'done',
    reason: undefined,
  })
}

/** Notes a request for a token with a wrong name or password. */
export function noteFailedLogin({ app, peers, request }: Exchange, userName: string): void {
  app.audit.noteRefusal(failedLogin('login-invalid', peers.clientOf(request), userName))
}

function failedLogin(reason: Refusal, address: string, claimed: string | undefined) {
  return {
    ...callerOf(undefined),
    address,
    action: 'login',
    target: undefined,
    repository: undefined,
    outcome: 'refused',
    reason,
    claimedUser: claimed !== undefined && isUserName(claimed) ? claimed : undefined,
  } as const
}

type Caller = Pick<Principal, 'account' | 'subject' | 'keyName'> & { readonly fingerprint?: string }

function callerOf(caller: Caller | undefined): Pick<Deed, 'account' | 'actor' | 'credential' | 'keyName'> {
  return {
    account: caller?.account,
    actor: caller?.subject,
    credential: caller?.fingerprint,
    keyName: caller?.keyName,
  }
}
