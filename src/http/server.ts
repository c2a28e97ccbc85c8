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
  /** Other processes of this server listen on the same port, and the system distributes the connections. */
  readonly isPortShared?: boolean
  /** A connection without a request, or with an incomplete header block, is closed after this time. */
  readonly idleSeconds: number
  /** The largest header block of a request. A larger one is answered with 431. */
  readonly headerBytesMax: number
  /** A reader that receives nothing for this long is cut. */
  readonly readerWindowMs: number
}

/**
 * Listens for connections. There is no limit on bodies here, because the registry limits blobs while it reads them.
 *
 * Bun's idle timer starts with a request and is not reset by its bytes: it would cut every transfer that takes longer,
 * however steady it is. So the timer is stopped for a request with a body, whose pace `ByteSource` checks, and for a
 * long answer, which `StalledReaders` checks.
 */
export class HttpServer {
  readonly #listen: (port: number) => Server<undefined>
  readonly #readers: StalledReaders
  readonly #gate: ConnectionGate
  readonly port: number
  /** The server that listens, or the last one that did. Bun also finds requests of the closed servers through it. */
  #server: Server<undefined>
  /** Servers that no longer listen, but whose last requests are still running. */
  readonly #closed = new Set<Server<undefined>>()

  constructor(app: Application, log: Log, settings: ListenSettings) {
    const pipeline = new Pipeline(app, log, {
      addressOf: (request) => this.#server.requestIP(request)?.address,
      onLongAnswer: (request) => this.#readers.watch(request),
      connection: {
        // Bun reports the address of a request only until its answer is sent or its connection is closed.
        isOpen: (request) => this.#server.requestIP(request) !== null,
        stopTimer: (request) => this.#server.timeout(request, 0),
        startTimer: (request) => this.#server.timeout(request, settings.idleSeconds),
        cut: (request) => this.#readers.cut(request),
      },
    })
    // Bun has one limit for the whole process, which is set here.
    Reflect.set(http, 'maxHeaderSize', settings.headerBytesMax)
    this.#listen = (port) =>
      Bun.serve({
        hostname: settings.host,
        port,
        idleTimeout: settings.idleSeconds,
        maxRequestBodySize: Number.MAX_SAFE_INTEGER,
        development: false,
        // Without `false`, a second server could listen on the same port and receive a part of the requests.
        reusePort: settings.isPortShared ?? false,
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

  /** The number of requests that have begun and are not answered yet. */
  get pending(): number {
    return new Set([this.#server, ...this.#closed])
      .values()
      .reduce((sum, { pendingRequests }) => sum + pendingRequests, 0)
  }

  /** Accepts no new connections and closes the idle ones. Running requests continue. */
  refuseNew(): void {
    this.#gate.stop()
    this.#closePort()
  }

  /** Closes every connection. */
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

/** A port that no other server uses, until processes that share it listen on it. */
export interface ReservedPort {
  readonly port: number
  release(): Promise<void>
}

/**
 * Checks that no other process listens on the port, and keeps it. Until the first worker listens, requests get 503.
 * `port` 0: the system chooses a free one.
 */
export async function reservePort(hostname: string, wanted: number): Promise<ReservedPort> {
  const fetch = () => new Response(null, { status: 503, headers: { 'retry-after': '1' } })
  const listen = (port: number, reusePort: boolean) =>
    Bun.serve({ hostname, port, reusePort, development: false, fetch })
  // Fails if any other process listens on the port, even one that shares it.
  const probe = listen(wanted, false)
  const port = probe.port ?? 0
  await probe.stop(true)
  const kept = listen(port, true)
  return { port, release: () => kept.stop(true) }
}
