import type { Server } from 'bun'
import type { Log } from '../lib/log.ts'
import type { Application } from './exchange.ts'
import { Pipeline } from './pipeline.ts'

export interface ListenSettings {
  readonly host: string
  readonly port: number
  /** A connection on which nothing moves for this long is cut: a reader that stopped, a sender between requests. */
  readonly idleSeconds: number
}

/** The socket. Blobs are bounded by the registry's own limits while they stream, so no body limit stands here. */
export class HttpServer {
  readonly #server: Server<undefined>

  constructor(app: Application, log: Log, settings: ListenSettings) {
    const pipeline = new Pipeline(app, log)
    this.#server = Bun.serve({
      hostname: settings.host,
      port: settings.port,
      idleTimeout: settings.idleSeconds,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      development: false,
      fetch: (request) => pipeline.handle(request),
      error: (error) => {
        log.write('error', 'an answer could not be sent', { error })
        return new Response(null, { status: 500 })
      },
    })
  }

  get port(): number {
    return this.#server.port ?? 0
  }

  /** Requests that were begun and not answered yet. */
  get pending(): number {
    return this.#server.pendingRequests
  }

  /** Takes no new connections; those that are open go on. */
  refuseNew(): void {
    void this.#server.stop(false)
  }

  /** Ends every connection. */
  async close(): Promise<void> {
    await this.#server.stop(true)
  }
}
