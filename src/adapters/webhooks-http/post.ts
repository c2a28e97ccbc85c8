import { HttpError, type ResponseHead, ResponseReader } from '../../lib/http-response-reader.ts'

export interface Endpoint {
  readonly address: string
  readonly port: number
  /** For an encrypted connection: the name that the certificate must have. */
  readonly serverName: string | undefined
}

/**
 * Sends the bytes of one request to an address and resolves with the head of the response. Then the connection is closed: nobody
 * reads the body.
 */
export async function postOnce(endpoint: Endpoint, request: Uint8Array, signal: AbortSignal): Promise<ResponseHead> {
  signal.throwIfAborted()
  const exchange = new Exchange(request)
  const abort = (): void => exchange.fail(new HttpError('aborted'))
  signal.addEventListener('abort', abort, { once: true })
  try {
    exchange.open(endpoint)
    return await exchange.head
  } finally {
    signal.removeEventListener('abort', abort)
    exchange.fail(new HttpError('closed'))
  }
}

/** One connection with one request. */
class Exchange {
  readonly #head = Promise.withResolvers<ResponseHead>()
  readonly #reader = new ResponseReader()
  #unsent: Uint8Array
  #socket: Bun.Socket | undefined
  #isReady = false
  #isOver = false

  constructor(request: Uint8Array) {
    this.#unsent = request
    // It may fail before the caller waits for it.
    this.#head.promise.catch(() => undefined)
  }

  get head(): Promise<ResponseHead> {
    return this.#head.promise
  }

  open({ address, port, serverName }: Endpoint): void {
    Bun.connect({
      hostname: address,
      port,
      ...(serverName !== undefined && { tls: { serverName, rejectUnauthorized: true } }),
      socket: {
        open: (socket) => {
          this.#socket = socket
          if (this.#isOver) socket.terminate()
          else if (serverName === undefined) this.#start()
        },
        handshake: (_, isVerified, error) => {
          if (isVerified && error === null) this.#start()
          else this.fail(error ?? new HttpError('CERT_NOT_VERIFIED'))
        },
        drain: () => this.#write(),
        data: (_, bytes) => this.#receive(bytes),
        error: (_, error) => this.fail(error),
        close: (_, error) => this.fail(error ?? new HttpError('ECONNRESET')),
      },
    }).catch((error: unknown) => this.fail(error))
  }

  #start(): void {
    this.#isReady = true
    this.#write()
  }

  #write(): void {
    if (!this.#isReady || this.#unsent.length === 0 || this.#socket === undefined) return
    const sent = this.#socket.write(this.#unsent)
    if (sent > 0) this.#unsent = this.#unsent.subarray(sent)
  }

  #receive(bytes: Uint8Array): void {
    try {
      this.#reader.push(bytes)
    } catch (error) {
      this.fail(error)
      return
    }
    if (this.#reader.head !== undefined) this.#head.resolve(this.#reader.head)
  }

  /** Closes the connection. Has no effect on a head that has arrived. */
  fail(error: unknown): void {
    this.#head.reject(error)
    if (this.#isOver) return
    this.#isOver = true
    this.#socket?.terminate()
  }
}
