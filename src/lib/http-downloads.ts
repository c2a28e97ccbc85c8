import { HttpError, type ResponseHead, ResponseReader } from './http-response-reader.ts'

/** The body of a response, read like a stream. */
export interface HttpDownload extends ResponseHead {
  /** Resolves without a value after the last byte. Rejects if the body breaks off. */
  read(): Promise<{ readonly value?: Uint8Array | undefined }>
}

/** While so many bytes wait for their reader, the connection is not read. */
const queuedBytesMax = 256 * 1024

/**
 * GET requests for long bodies, over connections of their own that are used again. `fetch` needs twice as much CPU time for such
 * a body: docs/decisions/0020-s3.md has the figures. These connections cannot pass through an HTTP proxy.
 */
export class HttpDownloads {
  readonly #idleMaxMs: number
  /** By origin. The last one was used last. */
  readonly #idle = new Map<string, Connection[]>()

  constructor(idleMaxMs: number) {
    this.#idleMaxMs = idleMaxMs
  }

  /** Resolves when the head of the response has arrived. The signal ends the request and its body. */
  async get(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpDownload> {
    const { origin, pathname, search } = new URL(url)
    const lines = [...new Headers(headers)].map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const request = `GET ${pathname}${search} HTTP/1.1\r\n${lines}\r\n`
    for (;;) {
      signal.throwIfAborted()
      const idle = this.#takeIdle(origin)
      const connection = idle ?? (await Connection.open(new URL(origin), signal))
      const transfer = connection.start(request, signal, () => this.#keep(origin, connection))
      try {
        return await transfer.open()
      } catch (error) {
        // The other end may close an idle connection at any time. A GET can be repeated.
        if (idle === undefined || signal.aborted || transfer.hasAnswered) throw error
      }
    }
  }

  #takeIdle(origin: string): Connection | undefined {
    const idle = this.#idle.get(origin) ?? []
    for (;;) {
      const connection = idle.pop()
      if (connection === undefined || connection.isOpen) return connection
    }
  }

  #keep(origin: string, connection: Connection): void {
    const idle = this.#idle.get(origin) ?? []
    this.#idle.set(origin, [...idle.filter(({ isOpen }) => isOpen), connection])
    connection.closeAfter(this.#idleMaxMs)
  }

  /** Closes idle connections. */
  close(): void {
    for (const connection of [...this.#idle.values()].flat()) connection.close(new HttpError('closed'))
    this.#idle.clear()
  }
}

/** One connection. It carries one request at a time. */
class Connection {
  #socket: Bun.Socket | undefined
  #idleTimer: Timer | undefined
  #transfer: Transfer | undefined
  #error: Error | undefined

  /** Resolves when a request can be sent: on an encrypted connection, after the certificate has been verified. */
  static async open({ protocol, hostname, port }: URL, signal: AbortSignal): Promise<Connection> {
    const connection = new Connection()
    const opened = Promise.withResolvers<void>()
    const isEncrypted = protocol === 'https:'
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    const fail = (error: Error): void => {
      opened.reject(error)
      connection.close(error)
    }
    const abort = (): void => fail(new HttpError('aborted'))
    signal.addEventListener('abort', abort, { once: true })
    Bun.connect({
      hostname: host,
      port: Number(port || (isEncrypted ? 443 : 80)),
      ...(isEncrypted && { tls: { serverName: host, rejectUnauthorized: true } }),
      socket: {
        open: (socket) => {
          connection.#socket = socket
          if (connection.#error !== undefined) socket.terminate()
          else if (!isEncrypted) opened.resolve()
        },
        handshake: (_, isVerified, error) => {
          if (isVerified) opened.resolve()
          else fail(error ?? new HttpError('CERT_NOT_VERIFIED'))
        },
        data: (_, bytes) => connection.#receive(bytes),
        error: (_, error) => fail(error),
        close: (_, error) => {
          if (error === undefined) connection.#transfer?.endInput()
          fail(error ?? new HttpError('ECONNRESET'))
        },
      },
    }).catch(fail)
    try {
      await opened.promise
      return connection
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  get isOpen(): boolean {
    return this.#error === undefined
  }

  /** `release` is called when the connection can carry the next request. */
  start(request: string, signal: AbortSignal, release: () => void): Transfer {
    clearTimeout(this.#idleTimer)
    const transfer = new Transfer(this, signal, () => {
      this.#transfer = undefined
      if (transfer.isReusable && this.isOpen) release()
      else this.close(new HttpError('closed'))
    })
    this.#transfer = transfer
    if (this.#error !== undefined) transfer.fail(this.#error)
    // A request is much smaller than the send buffer of a connection without unsent bytes.
    else if (this.#socket?.write(request) !== request.length) this.close(new HttpError('not-sent'))
    return transfer
  }

  #receive(bytes: Uint8Array): void {
    if (this.#transfer === undefined) this.close(new HttpError('unexpected-bytes'))
    else this.#transfer.receive(bytes)
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }

  closeAfter(ms: number): void {
    this.#idleTimer = setTimeout(() => this.close(new HttpError('closed')), ms)
    this.#idleTimer.unref()
  }

  close(error: Error): void {
    if (this.#error !== undefined) return
    this.#error = error
    clearTimeout(this.#idleTimer)
    this.#socket?.terminate()
    this.#transfer?.fail(error)
  }
}

/** One response that arrives on a connection. */
class Transfer {
  readonly #connection: Connection
  readonly #signal: AbortSignal
  readonly #end: () => void
  readonly #reader = new ResponseReader()
  readonly #queue: Uint8Array[] = []
  #queuedBytes = 0
  #hasAnswered = false
  #isPaused = false
  #isEnded = false
  #error: Error | undefined
  /** Settled when bytes have arrived or the connection has ended. */
  #waiting: PromiseWithResolvers<void> | undefined
  readonly #abort = (): void => this.#connection.close(new HttpError('aborted'))

  /** `end` is called once, when the body has been read to its end. */
  constructor(connection: Connection, signal: AbortSignal, end: () => void) {
    this.#connection = connection
    this.#signal = signal
    this.#end = end
    signal.addEventListener('abort', this.#abort, { once: true })
  }

  /** Any byte of the response has arrived. */
  get hasAnswered(): boolean {
    return this.#hasAnswered
  }

  get isReusable(): boolean {
    return this.#reader.isReusable
  }

  async open(): Promise<HttpDownload> {
    while (this.#reader.head === undefined) await this.#wait()
    return { ...this.#reader.head, read: () => this.#read() }
  }

  async #read(): Promise<{ readonly value?: Uint8Array | undefined }> {
    while (this.#queue.length === 0) {
      if (this.#reader.isComplete) return {}
      await this.#wait()
    }
    const value = this.#queue.shift()
    this.#queuedBytes -= value?.length ?? 0
    if (this.#isPaused && this.#queuedBytes === 0) {
      this.#isPaused = false
      this.#connection.resume()
    }
    this.#endIfRead()
    return { value }
  }

  #endIfRead(): void {
    if (this.#isEnded || this.#queue.length > 0 || !this.#reader.isComplete) return
    this.#isEnded = true
    // The connection may carry another request from now on.
    this.#signal.removeEventListener('abort', this.#abort)
    this.#end()
  }

  #wait(): Promise<void> {
    if (this.#error !== undefined) return Promise.reject(this.#error)
    this.#waiting = Promise.withResolvers()
    return this.#waiting.promise
  }

  receive(bytes: Uint8Array): void {
    this.#hasAnswered = true
    try {
      for (const piece of this.#reader.push(bytes)) {
        this.#queue.push(piece)
        this.#queuedBytes += piece.length
      }
    } catch (error) {
      this.#connection.close(error as Error)
      return
    }
    if (this.#queuedBytes > queuedBytesMax && !this.#isPaused) {
      this.#isPaused = true
      this.#connection.pause()
    }
    this.#endIfRead()
    this.#waiting?.resolve()
  }

  /** The other end has closed the connection. This ends a body without a length. */
  endInput(): void {
    this.#reader.end()
    this.#endIfRead()
    this.#waiting?.resolve()
  }

  /** The bytes that have arrived before can still be read. */
  fail(error: Error): void {
    this.#error ??= error
    this.#waiting?.reject(error)
  }
}
