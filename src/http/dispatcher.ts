import { andThen } from '../lib/and-then.ts'
import type { Log } from '../lib/log.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import { isRepositoryName, parseRepositoryName, type RepositoryName } from '../oci/names.ts'
import type { Awaitable } from '../ports/awaitable.ts'
import type { Principal } from '../ports/identity.ts'
import { checkAllowed } from '../registry/access.ts'
import { openAccount } from '../registry/accounts.ts'
import { changeUnlessReadOnly } from '../registry/read-only.ts'
import type { Answer } from './answer.ts'
import { recordChange } from './audit.ts'
import { type Authenticator, refuseAnonymous } from './authenticator.ts'
import type { Application, Exchange } from './exchange.ts'
import { type Area, apiMount, areaOf } from './mounts.ts'
import { checkHost, type Peers } from './peers.ts'
import { openBody } from './request-body.ts'
import { isChange, type RequestContext } from './request-context.ts'
import { logLoss } from './request-log.ts'
import type { RequestMemory } from './request-memory.ts'
import { parseTarget, type RawTarget, type RequestTarget, splitTarget } from './request-target.ts'
import type { RouteOf } from './route.ts'
import { type MatchedRoute, Router } from './router.ts'
import { registryRoutes, serviceRoutes } from './routes.ts'

export interface DispatcherNeeds {
  readonly app: Application
  readonly log: Log
  readonly peers: Peers
  readonly authenticator: Authenticator
  /** The memory of the request; created at the first call. */
  readonly memoryOf: (context: RequestContext) => RequestMemory
}

/**
 * From a request to the answer of its handler: parse the target, find the credential and the route, authenticate,
 * authorise, check the account, call the handler. Any refusal is thrown.
 */
export class Dispatcher {
  readonly #needs: DispatcherNeeds
  readonly #router = new Router(registryRoutes, serviceRoutes)

  constructor(needs: DispatcherNeeds) {
    this.#needs = needs
  }

  /** The answer is there at once if everything that it needs is in memory. */
  dispatch(context: RequestContext): Awaitable<Answer> {
    const { app } = this.#needs
    const { request } = context
    // First, because the area decides the form of an error about the target itself.
    const raw = splitTarget(request.url)
    context.area = areaOf(raw.path, app.http.hasRootMount)
    const target = findTarget(request, raw, context.area)
    if (target === undefined) return this.#refusePath(raw, context)
    context.target = target
    checkHost(request.headers.get('host'))
    const matched = this.#findRoute(context)
    if (matched instanceof RegistryRefusal) return this.#refuseRoute(matched, context)
    context.matched = matched
    const exchange = this.#openExchange(context, matched)
    const { route } = matched
    if (route.access === 'anyone') return route.handle(exchange)
    return andThen(this.#findCaller(context), (principal) => this.#dispatchKnown(route, exchange, principal, context))
  }

  #dispatchKnown(
    route: RouteOf<'known caller' | 'enabled account' | 'repository'>,
    exchange: Exchange,
    principal: Principal,
    context: RequestContext,
  ): Awaitable<Answer> {
    context.principal = principal
    // A scoped token is valid for the registry interface only.
    if (principal.kind === 'scoped' && context.area.kind === 'service') throw new RegistryRefusal('credentials-invalid')
    if (route.access === 'known caller') {
      refuseAnonymous(principal)
      if (route.right !== undefined) checkAllowed(principal, route.right)
      const answer = () => route.handle({ ...exchange, principal })
      if (route.right === undefined || !isChange(exchange.request)) return answer()
      return changeUnlessReadOnly(exchange.app, async () => recordChange(exchange, route, principal, await answer()))
    }
    return this.#dispatchRegistry(route, exchange, principal, context.area)
  }

  /** The routes that need an enabled account. Most of them also need a repository that the caller has a right to. */
  #dispatchRegistry(
    route: RouteOf<'enabled account' | 'repository'>,
    exchange: Exchange,
    principal: Principal,
    area: Area,
  ): Awaitable<Answer> {
    const { request, path } = exchange
    // Anonymous callers may pull, but must not learn who pushed what.
    if (area.kind === 'service') refuseAnonymous(principal)
    const repository = route.access === 'repository' ? parseNameFor(request, path['name'] ?? '', principal) : undefined
    checkAllowed(principal, route.right, repository)
    const mount = area.kind === 'registry' ? area.mount : apiMount
    const opening = openAccount(this.#needs.app, principal.account, isChange(request) ? 'change' : 'read')
    // The address is recorded with the change.
    const caller = isChange(request) ? { ...principal, address: exchange.peers.clientOf(request) } : principal
    return andThen(opening, (account) => {
      if (route.access === 'enabled account') {
        const answer = route.handle({ ...exchange, principal: caller, account, mount })
        if (area.kind === 'registry' || !isChange(request)) return answer
        return andThen(answer, (done) => recordChange(exchange, route, principal, done))
      }
      if (repository === undefined) throw new RegistryRefusal('name-invalid')
      const repositoryKey = { accountId: account.id, repository }
      return route.handle({ ...exchange, principal: caller, account, mount, repository, repositoryKey })
    })
  }

  #openExchange(context: RequestContext, { values }: MatchedRoute): Exchange {
    const { app, log, peers, authenticator, memoryOf } = this.#needs
    const { request, target } = context
    return {
      app,
      request,
      method: request.method,
      target,
      path: values,
      peers,
      authenticator,
      present: () => context.presented,
      body: () => {
        context.body = openBody(request, app.http)
        return context.body
      },
      reserve: (bytes) => memoryOf(context).reserve(bytes, context.body),
      noteLoss: (lost) => logLoss(log, lost, context),
    }
  }

  /** For an ambiguous path, which contains no valid name. The caller learns this only after authentication. */
  async #refusePath({ queryText }: RawTarget, context: RequestContext): Promise<never> {
    checkHost(context.request.headers.get('host'))
    context.target = { path: '', query: new URLSearchParams(queryText) }
    refuseAnonymous(await this.#identify(context))
    throw new RegistryRefusal('path-unknown')
  }

  /** The refusal is returned, because the caller must be authenticated before it is thrown. */
  #findRoute({ area, target, request }: RequestContext): MatchedRoute | RegistryRefusal {
    try {
      return this.#router.find(area, target.path, request.method)
    } catch (error) {
      if (error instanceof RegistryRefusal) return error
      throw error
    }
  }

  /** An anonymous caller must not learn which paths exist. */
  async #refuseRoute(refusal: RegistryRefusal, context: RequestContext): Promise<never> {
    if (context.area.kind === 'registry') refuseAnonymous(await this.#identify(context))
    throw refusal
  }

  #findCaller(context: RequestContext): Awaitable<Principal> {
    const cached = this.#needs.authenticator.findCached(context.request.headers, () => context.presented)
    return cached ?? this.#identify(context)
  }

  async #identify(context: RequestContext): Promise<Principal> {
    context.principal = await this.#needs.authenticator.identify(context.request, context.presented)
    return context.principal
  }
}

/** An invalid name is the name of no repository: 404 for a read, 400 for a write, 401 for anonymous callers. */
function parseNameFor(request: Request, name: string, principal: Principal): RepositoryName {
  if (isRepositoryName(name)) return name
  refuseAnonymous(principal)
  if (isChange(request)) return parseRepositoryName(name)
  throw new RegistryRefusal('name-unknown', { name: name.slice(0, 255) })
}

/** Undefined for a read in the registry whose path is ambiguous. */
function findTarget(request: Request, raw: RawTarget, { kind }: Area): RequestTarget | undefined {
  try {
    return parseTarget(request.url, raw)
  } catch (error) {
    const isPath = error instanceof RegistryRefusal && error.refusal === 'path-invalid'
    if (isPath && kind === 'registry' && !isChange(request)) return undefined
    throw error
  }
}
