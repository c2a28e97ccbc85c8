import type { ByteSource } from '../lib/byte-source.ts'
import type { Log } from '../lib/log.ts'
import { BytesLost, RegistryRefusal, Unavailable } from '../oci/errors.ts'
import { isRepositoryName, parseRepositoryName, type RepositoryName } from '../oci/names.ts'
import type { Principal } from '../ports/identity.ts'
import { checkAllowed } from '../registry/access.ts'
import { openAccount } from '../registry/accounts.ts'
import { changing } from '../registry/read-only.ts'
import { Authenticator, refuseAnonymous } from './authenticator.ts'
import { Challenges } from './challenges.ts'
import { findCredential, type PresentedCredential } from './credentials.ts'
import { answerError } from './error-body.ts'
import type { Answer, Application, Exchange } from './exchange.ts'
import { findInterruption, type Interruption } from './interruption.ts'
import { logLoss } from './loss-lines.ts'
import { type Territory, territoryOf } from './mounts.ts'
import { type AddressOf, checkHost, Peers } from './peers.ts'
import { announcesBody, openBody } from './request-body.ts'
import {
  bytesInMemory,
  type Connection,
  isLong,
  noConnection,
  RequestMemory,
  smallAnswerBytes,
} from './request-memory.ts'
import { parseTarget, type RawTarget, type RequestTarget, splitTarget } from './request-target.ts'
import { toResponse } from './response.ts'
import type { RouteOf } from './route.ts'
import { type MatchedRoute, Router } from './router.ts'
import { registryRoutes, serviceRoutes } from './routes.ts'

const requestIdPattern = /^[A-Za-z0-9._-]{1,64}$/

const dropped: Answer = { status: 503, headers: {} }
const noTarget: RequestTarget = { path: '', query: new URLSearchParams() }

/** What is learnt of one request on its way, for its answer and its log line. */
interface Passage {
  readonly id: string
  readonly startedAt: number
  target: RequestTarget
  territory: Territory
  found: MatchedRoute | undefined
  presented: PresentedCredential | undefined
  principal: Principal | undefined
  body: ByteSource | undefined
  /** Made when the request needs memory that counts. */
  memory: RequestMemory | undefined
  interruption?: Interruption | undefined
}

/** What only the socket knows. */
export interface Surroundings {
  readonly addressOf?: AddressOf
  readonly onLongAnswer?: (request: Request) => void
  readonly connection?: Connection
}

/**
 * The way of every request: number it, take its address apart, find its route, learn who asks, decide whether they may,
 * let the handler translate, answer, log. The one catch.
 */
export class Pipeline {
  readonly #app: Application
  readonly #log: Log
  readonly #onLongAnswer: (request: Request) => void
  readonly #connection: Connection
  readonly #peers: Peers
  readonly #authenticator: Authenticator
  readonly #challenges: Challenges
  readonly #router = new Router(registryRoutes, serviceRoutes)

  constructor(app: Application, log: Log, { addressOf, onLongAnswer, connection }: Surroundings = {}) {
    this.#app = app
    this.#log = log
    this.#onLongAnswer = onLongAnswer ?? (() => undefined)
    this.#connection = connection ?? noConnection
    this.#peers = new Peers(app.http, addressOf ?? (() => undefined))
    this.#authenticator = new Authenticator(app, this.#peers)
    this.#challenges = new Challenges(app.http, this.#peers, log)
  }

  async handle(request: Request): Promise<Response> {
    const passage = begin(request)
    let answer: Answer
    try {
      answer = await this.#answer(request, passage)
    } catch (error) {
      answer = this.#answerFault(error, request, passage)
    }
    const memoryBytes = request.method === 'HEAD' ? 0 : bytesInMemory(answer)
    if (memoryBytes <= smallAnswerBytes) passage.memory?.release()
    else if (!this.#memoryOf(request, passage).keep(memoryBytes)) {
      // Nothing may keep the answer while the request waits for room.
      answer = dropped
      answer = await this.#answerLater(request, passage, memoryBytes)
    }
    const response = toResponse(answer, {
      isHead: request.method === 'HEAD',
      requestId: passage.id,
      // The rest of a refused body is not read: the connection ends after the answer.
      isLast: this.#app.isLeaving() || (answer.status >= 400 && !passage.body?.isDrained && announcesBody(request)),
      isSecretInQuery: hasKeyInQuery(request.url, passage.target),
    })
    if (request.method === 'GET' && isLong(answer)) this.#onLongAnswer(request)
    this.#logRequest(request.method, answer, passage)
    return response
  }

  /** Waits until the answer may be kept in memory, and makes it again. */
  async #answerLater(request: Request, passage: Passage, memoryBytes: number): Promise<Answer> {
    try {
      await this.#memoryOf(request, passage).wait(memoryBytes)
      const answer = await this.#answer(request, passage)
      passage.memory?.keep(bytesInMemory(answer))
      return answer
    } catch (error) {
      passage.memory?.release()
      return this.#answerFault(error, request, passage)
    }
  }

  #answerFault(error: unknown, request: Request, passage: Passage): Answer {
    this.#logFault(error, passage)
    passage.interruption = findInterruption(error)
    return answerError(error, {
      territory: passage.territory,
      path: passage.target.path,
      requestId: passage.id,
      challenge: (refusal) => this.#challenges.make(request, refusal, passage),
    })
  }

  #memoryOf(request: Request, passage: Passage): RequestMemory {
    passage.memory ??= new RequestMemory(this.#app.memory, this.#connection, request, () => ({
      principal: passage.principal,
      route: passage.found?.route,
      network: () => this.#peers.networksOf(request)[0]?.name,
    }))
    return passage.memory
  }

  async #answer(request: Request, passage: Passage): Promise<Answer> {
    const app = this.#app
    // First, because it decides the form of an error about the address itself.
    const raw = splitTarget(request.url)
    passage.territory = territoryOf(raw.path, app.http.hasRootMount)
    passage.target = findTarget(request, raw, passage.territory) ?? (await this.#refusePath(request, raw, passage))
    checkHost(request.headers.get('host'))
    const { target, territory } = passage
    passage.presented = findCredential(request.headers, target.query)
    // Strangers do not learn which addresses exist: an unknown one is told only after the caller is known.
    const found = this.#find(territory, target.path, request.method)
    if (found instanceof RegistryRefusal) {
      if (territory.kind === 'registry') refuseAnonymous(await this.#identify(request, passage))
      throw found
    }
    passage.found = found
    const exchange: Exchange = {
      app,
      request,
      method: request.method,
      target,
      path: found.values,
      peers: this.#peers,
      authenticator: this.#authenticator,
      presented: passage.presented,
      body: () => {
        passage.body = openBody(request, app.http)
        return passage.body
      },
      reserve: (bytes) => this.#memoryOf(request, passage).reserve(bytes, passage.body),
      noteLoss: (lost) => logLoss(this.#log, lost, passage),
    }
    const { route } = found
    if (route.access === 'anyone') return route.handle(exchange)

    const principal = this.#authenticator.recall(passage.presented) ?? (await this.#identify(request, passage))
    passage.principal = principal
    // A token for some repositories is worth nothing outside of the registry.
    if (principal.kind === 'scoped' && territory.kind === 'service') throw new RegistryRefusal('credentials-invalid')
    if (route.access === 'known caller') {
      refuseAnonymous(principal)
      if (route.right !== undefined) checkAllowed(principal, route.right)
      const answer = async () => route.handle({ ...exchange, principal })
      return route.right !== undefined && isChange(request) ? changing(app, answer) : answer()
    }
    return this.#answerRegistry(route, exchange, principal, territory)
  }

  /** The routes that need an enabled account, and most of them a repository that the caller may reach. */
  async #answerRegistry(
    route: RouteOf<'enabled account' | 'repository'>,
    exchange: Exchange,
    principal: Principal,
    territory: Territory,
  ): Promise<Answer> {
    if (territory.kind !== 'registry') throw new RegistryRefusal('route-unknown')
    const name = exchange.path['name'] ?? ''
    const repository = route.access === 'repository' ? parseNameFor(exchange.request, name, principal) : undefined
    checkAllowed(principal, route.right, repository)
    const account = await openAccount(this.#app, principal.account, isChange(exchange.request) ? 'change' : 'read')
    const { mount } = territory
    if (route.access === 'enabled account') return route.handle({ ...exchange, principal, account, mount })
    if (repository === undefined) throw new RegistryRefusal('name-invalid')
    const scope = { accountId: account.id, repository }
    return route.handle({ ...exchange, principal, account, mount, repository, scope })
  }

  /** A path that no name or reference can be read from is an unknown address: it is told only after the caller is known. */
  async #refusePath(request: Request, { queryText }: RawTarget, passage: Passage): Promise<never> {
    checkHost(request.headers.get('host'))
    passage.presented = findCredential(request.headers, new URLSearchParams(queryText))
    refuseAnonymous(await this.#identify(request, passage))
    throw new RegistryRefusal('path-unknown')
  }

  #find(territory: Territory, path: string, method: string) {
    try {
      return this.#router.find(territory, path, method)
    } catch (error) {
      if (error instanceof RegistryRefusal) return error
      throw error
    }
  }

  async #identify(request: Request, passage: Passage): Promise<Principal> {
    passage.principal = await this.#authenticator.identify(request, passage.presented)
    return passage.principal
  }

  #logFault(error: unknown, passage: Passage): void {
    if (error instanceof BytesLost) logLoss(this.#log, error.lost, passage)
    if (error instanceof RegistryRefusal) return
    const level = error instanceof Unavailable ? 'warn' : 'error'
    this.#log.write(level, 'request failed', { id: passage.id, error })
  }

  #logRequest(method: string, answer: Answer, passage: Passage): void {
    this.#log.write('info', 'request', {
      id: passage.id,
      method,
      path: passage.target.path,
      route: passage.found?.route.operationId,
      status: answer.status,
      bytes: answer.lengthBytes,
      received: passage.body?.receivedBytes,
      ...passage.interruption,
      ms: Math.round((performance.now() - passage.startedAt) * 100) / 100,
      who: passage.principal?.fingerprint,
    })
  }
}

/** A malformed name names no repository: a read gets 404, a write 400. Strangers must log in before they are told. */
function parseNameFor(request: Request, name: string, principal: Principal): RepositoryName {
  if (isRepositoryName(name)) return name
  refuseAnonymous(principal)
  if (isChange(request)) return parseRepositoryName(name)
  throw new RegistryRefusal('name-unknown', { name: name.slice(0, 255) })
}

/** Undefined for a read in the registry whose path is ambiguous. */
function findTarget(request: Request, raw: RawTarget, { kind }: Territory): RequestTarget | undefined {
  try {
    return parseTarget(request.url, raw)
  } catch (error) {
    const isPath = error instanceof RegistryRefusal && error.refusal === 'path-invalid'
    if (isPath && kind === 'registry' && !isChange(request)) return undefined
    throw error
  }
}

function isChange({ method }: Request): boolean {
  return method !== 'GET' && method !== 'HEAD'
}

/** An address that was too odd to be taken apart is looked at as it came. */
function hasKeyInQuery(url: string, target: RequestTarget): boolean {
  return target === noTarget ? url.includes('apiKey') : target.query.has('apiKey')
}

function begin(request: Request): Passage {
  const given = request.headers.get('x-request-id')
  return {
    id: given !== null && requestIdPattern.test(given) ? given : crypto.randomUUID(),
    startedAt: performance.now(),
    target: noTarget,
    territory: { kind: 'service' },
    found: undefined,
    presented: undefined,
    principal: undefined,
    body: undefined,
    memory: undefined,
  }
}
