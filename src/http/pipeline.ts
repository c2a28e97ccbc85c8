import { andThen } from '../lib/and-then.ts'
import type { Log } from '../lib/log.ts'
import type { Awaitable } from '../ports/awaitable.ts'
import { type Answer, toResponse } from './answer.ts'
import { noteRefusal } from './audit.ts'
import { Authenticator } from './authenticator.ts'
import { Challenges } from './challenges.ts'
import { Dispatcher } from './dispatcher.ts'
import { answerError } from './error-body.ts'
import type { Application } from './exchange.ts'
import { type AddressOf, Peers } from './peers.ts'
import { announcesBody } from './request-body.ts'
import { RequestContext } from './request-context.ts'
import { findInterruption, logError, logRequest } from './request-log.ts'
import {
  bytesInMemory,
  type Connection,
  isLong,
  noConnection,
  RequestMemory,
  smallAnswerBytes,
} from './request-memory.ts'

/** What the pipeline needs from the server that holds the connections. Without a server the defaults apply. */
export interface ServerHooks {
  readonly addressOf?: AddressOf
  readonly onLongAnswer?: (request: Request) => void
  readonly connection?: Connection
}

/**
 * Handles every request: lets the dispatcher answer it, turns an error into an answer, reserves the memory of the
 * answer, and logs the request. Only this class turns errors into responses, with one exception: if Bun cannot send an
 * answer, its `error` handler in `server.ts` answers 500.
 */
export class Pipeline {
  readonly #app: Application
  readonly #log: Log
  readonly #onLongAnswer: (request: Request) => void
  readonly #connection: Connection
  readonly #peers: Peers
  readonly #challenges: Challenges
  readonly #dispatcher: Dispatcher

  constructor(app: Application, log: Log, { addressOf, onLongAnswer, connection }: ServerHooks = {}) {
    this.#app = app
    this.#log = log
    this.#onLongAnswer = onLongAnswer ?? (() => undefined)
    this.#connection = connection ?? noConnection
    this.#peers = new Peers(app.http, addressOf ?? (() => undefined))
    this.#challenges = new Challenges(app.http, this.#peers, log)
    this.#dispatcher = new Dispatcher({
      app,
      log,
      peers: this.#peers,
      authenticator: new Authenticator(app, this.#peers),
      memoryOf: (context) => this.#memoryOf(context),
    })
  }

  /** Most reads are answered at once, from memory. Then there is no promise, which would cost a tenth of the request. */
  handle(request: Request): Awaitable<Response> {
    const context = new RequestContext(request)
    return andThen(this.#dispatch(context), (answer) => {
      const memoryBytes = request.method === 'HEAD' ? 0 : bytesInMemory(answer)
      if (memoryBytes <= smallAnswerBytes) context.memory?.release()
      else if (!this.#memoryOf(context).keep(memoryBytes)) return this.#respondLater(context, memoryBytes)
      return this.#respond(answer, context)
    })
  }

  #dispatch(context: RequestContext): Awaitable<Answer> {
    const answerError = (error: unknown) => this.#answerError(error, context)
    try {
      const answer = this.#dispatcher.dispatch(context)
      return answer instanceof Promise ? answer.catch(answerError) : answer
    } catch (error) {
      return answerError(error)
    }
  }

  #respond(answer: Answer, context: RequestContext): Response {
    const { request } = context
    const response = toResponse(answer, {
      isHead: request.method === 'HEAD',
      requestId: context.id,
      // The rest of a refused body is not read, so the connection cannot be used again.
      isLast: this.#app.isLeaving() || (answer.status >= 400 && !context.body?.isDrained && announcesBody(request)),
      isSecretInQuery: context.hasKeyInQuery,
    })
    if (request.method === 'GET' && isLong(answer)) this.#onLongAnswer(request)
    logRequest(this.#log, answer, context)
    return response
  }

  /** Waits until memory for the answer is free, and dispatches the request again. Meanwhile nothing refers to the answer. */
  async #respondLater(context: RequestContext, memoryBytes: number): Promise<Response> {
    return this.#respond(await this.#answerAgain(context, memoryBytes), context)
  }

  async #answerAgain(context: RequestContext, memoryBytes: number): Promise<Answer> {
    try {
      await this.#memoryOf(context).wait(memoryBytes)
      const answer = await this.#dispatcher.dispatch(context)
      context.memory?.keep(bytesInMemory(answer))
      return answer
    } catch (error) {
      context.memory?.release()
      return this.#answerError(error, context)
    }
  }

  #answerError(error: unknown, context: RequestContext): Answer {
    logError(this.#log, error, context)
    noteRefusal(this.#app, this.#peers, error, context)
    context.interruption = findInterruption(error)
    return answerError(error, {
      area: context.area,
      path: context.target.path,
      requestId: context.id,
      challenge: (refusal) => this.#challenges.create(refusal, context),
    })
  }

  #memoryOf(context: RequestContext): RequestMemory {
    context.memory ??= new RequestMemory(this.#app.memory, this.#connection, context.request, () => ({
      principal: context.principal,
      route: context.matched?.route,
      network: () => this.#peers.networksOf(context.request)[0]?.name,
    }))
    return context.memory
  }
}
