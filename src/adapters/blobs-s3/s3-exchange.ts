import { type S3Body, sizeOfBody, toRequestBody } from './s3-body.ts'
import { faultOfAnswer, faultOfConnection, S3Fault } from './s3-fault.ts'

/** One signed request, as it goes over the wire. */
export interface S3Request {
  readonly operation: string
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: S3Body | undefined
  /** Until the answer's headers. */
  readonly timeoutMs: number
  /** A connection that was idle may be gone already; then nobody knows whether the request was carried out. */
  readonly isOnFreshConnection: boolean
}

const errorBytesMax = 64 * 1024
/** The longest wait for the next bytes of an error's body; the time for the headers ends it, too. */
const errorBodyMs = 5_000
/** A thousand names of a kilobyte, and what stands around them, written at its longest. */
const answerBytesMax = 8 * 1024 * 1024
/** A Complete sends a space now and then for minutes; not for ever. */
const answerMs = 15 * 60_000

/** One request that S3 answered well, with its body still to come. */
export class S3Exchange {
  readonly status: number
  readonly headers: Headers
  readonly #operation: string
  readonly #controller: AbortController
  readonly #reader: Pick<ReadableStreamDefaultReader<Uint8Array>, 'read'> | undefined
  #isTimedOut = false

  private constructor(operation: string, response: Response, controller: AbortController) {
    this.status = response.status
    this.headers = response.headers
    this.#operation = operation
    this.#controller = controller
    this.#reader = response.body?.getReader()
  }

  /** As the answer's headers are there. Rejects with `S3Fault`, as do the rest. */
  static async begin(request: S3Request, session: Bun.FetchSession, nowMs: () => number): Promise<S3Exchange> {
    const { operation } = request
    const controller = new AbortController()
    let isTimedOut = false
    const timer = setTimeout(() => {
      isTimedOut = true
      controller.abort()
    }, request.timeoutMs)
    try {
      const response = await session.fetch(request.url, toInit(request, controller.signal))
      const exchange = new S3Exchange(operation, response, controller)
      if (response.ok) return exchange
      throw await exchange.#fault(nowMs())
    } catch (error) {
      // The status has come, even if the reason has not.
      if (error instanceof S3Fault) throw error
      throw isTimedOut ? new S3Fault(operation, { code: 'timeout' }) : faultOfConnection(operation, error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** The next bytes, or undefined behind the last; waits for them so long. */
  async next(waitMs: number): Promise<Uint8Array | undefined> {
    const timer = setTimeout(() => {
      this.#isTimedOut = true
      this.#controller.abort()
    }, waitMs)
    try {
      return (await this.#reader?.read())?.value
    } catch (error) {
      if (this.#isTimedOut) throw new S3Fault(this.#operation, { code: 'timeout' })
      throw faultOfConnection(this.#operation, error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** The whole body, as far as it is of a sane size. */
  async text(waitMs: number, bytesMax = answerBytesMax): Promise<string> {
    const chunks: Uint8Array[] = []
    const startedAt = performance.now()
    let length = 0
    for (;;) {
      const chunk = await this.next(waitMs)
      if (chunk === undefined) return Buffer.concat(chunks).toString()
      length += chunk.length
      chunks.push(chunk)
      if (length <= bytesMax && performance.now() - startedAt <= answerMs) continue
      this.abandon()
      throw new S3Fault(this.#operation, { code: 'malformed', words: 'an answer without end' })
    }
  }

  /** Ends the connection, where the body is not read to its end. */
  abandon(): void {
    this.#controller.abort()
  }

  async #fault(nowMs: number): Promise<S3Fault> {
    // A body that cannot be read, or does not come in time, does not change what the status says.
    const text = await this.text(errorBodyMs, errorBytesMax).catch(() => '')
    return faultOfAnswer(this.#operation, this.status, this.headers, text, nowMs)
  }
}

function toInit(request: S3Request, signal: AbortSignal): BunFetchRequestInit {
  const { method, headers, body } = request
  // No redirects: another address must not get the signature. No decompression: bytes are served as they are stored. No
  // idle timer: ours are exact.
  const init = { method, redirect: 'manual', decompress: false, timeout: false, signal } as const
  const keepalive = !request.isOnFreshConnection
  if (body === undefined) return { ...init, keepalive, headers }
  return {
    ...init,
    keepalive,
    headers: { ...headers, 'content-length': String(sizeOfBody(body)) },
    body: toRequestBody(body) as Bun.BodyInit,
  }
}
