import http from 'node:http'
import type { Server } from 'bun'
import type { Log } from '../lib/log.ts'
import { ConnectionGate, type GateSettings } from './connection-gate.ts'
import type { Application } from './exchange.ts'
import { Pipeline } from './pipeline.ts'
import { StalledReaders } from './stalled-readers.ts'

export interface ListenSettings extends GateSettings {
  readonly host: string
  readonly port: number
  /** A connection without a request, or with half of its headers, is cut after this long. */
  readonly idleSeconds: number
  /** Largest header block of a request; 431 above it. */
  readonly headerBytesMax: number
  /** A reader that takes nothing for this long is cut. */
  readonly readerWindowMs: number
}

/**
 * The socket. Blobs are bounded by the registry's own limits while they stream, so no body limit stands here.
 *
 * Bun's idle timer runs from the begin of a request and is not wound by its bytes: left to itself it would cut every
 * transfer that takes longer, however steadily it flows. So it is stopped for a request with a body, which `ByteSource`
 * watches by its pace, and for a long answer, which `StalledReaders` watches.
 */
export class HttpServer {
  readonly #listen: (port: number) => Server<undefined>
  readonly #readers: StalledReaders
  readonly #gate: ConnectionGate
  readonly port: number
  /** The one that listens, or that was the last to listen. It also answers for requests of the others. */
  #server: Server<undefined>
  /** Their ports are closed; their last requests still run. */
  readonly #closed = new Set<Server<undefined>>()

  constructor(app: Application, log: Log, settings: ListenSettings) {
    const pipeline = new Pipeline(app, log, {
      addressOf: (request) => this.#server.requestIP(request)?.address,
      onLongAnswer: (request) => this.#readers.watch(request),
      connection: {
        // Bun tells the address of a request until its answer is sent or its connection is gone, and no longer.
        isOpen: (request) => this.#server.requestIP(request) !== null,
        stopTimer: (request) => this.#server.timeout(request, 0),
        startTimer: (request) => this.#server.timeout(request, settings.idleSeconds),
        cut: (request) => this.#readers.cut(request),
      },
    })
    // Bun has one limit for the whole process, and this is where it is set.
    Reflect.set(http, 'maxHeaderSize', settings.headerBytesMax)
    this.#listen = (port) =>
      Bun.serve({
        hostname: settings.host,
        port,
        idleTimeout: settings.idleSeconds,
        maxRequestBodySize: Number.MAX_SAFE_INTEGER,
        development: false,
        // With `development: false` Bun would let a second process listen on the same port and share its requests.
        reusePort: false,
        fetch: (request, server) => {
          if (mayHaveBody(request.method)) return handleUntimed(pipeline, request, server, settings.idleSeconds)
          return pipeline.handle(request)
        },
        error: (error) => {
          log.write('error', 'an answer could not be sent', { error })
          return new Response(null, { status: 500 })
        },
      })
    this.#server = this.#listen(settings.port)
    this.port = this.#server.port ?? 0
    this.#readers = new StalledReaders(this.#server, settings.readerWindowMs, log)
    this.#gate = new ConnectionGate(settings, { close: () => this.#closePort(), open: () => this.#openPort() }, log)
  }

  /** Requests that were begun and not answered yet. */
  get pending(): number {
    return new Set([this.#server, ...this.#closed])
      .values()
      .reduce((sum, { pendingRequests }) => sum + pendingRequests, 0)
  }

  /** Takes no new connections and ends the idle ones; requests that run go on. */
  refuseNew(): void {
    this.#gate.stop()
    this.#closePort()
  }

  /** Ends every connection. */
  async close(): Promise<void> {
    this.#gate.stop()
    this.#readers.close()
    await Promise.all([this.#server, ...this.#closed].map((server) => server.stop(true)))
  }

  #openPort(): void {
    this.#server = this.#listen(this.port)
  }

  #closePort(): void {
    const server = this.#server
    if (this.#closed.has(server)) return
    this.#closed.add(server)
    void server.stop(false).then(() => this.#closed.delete(server))
  }
}

function mayHaveBody(method: string): boolean {
  return method === 'PATCH' || method === 'PUT' || method === 'POST'
}

async function handleUntimed(
  pipeline: Pipeline,
  request: Request,
  server: Server<undefined>,
  idleSeconds: number,
): Promise<Response> {
  server.timeout(request, 0)
  const response = await pipeline.handle(request)
  server.timeout(request, idleSeconds)
  return response
}
