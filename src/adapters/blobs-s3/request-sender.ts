import { HttpDownloads } from '../../lib/http-downloads.ts'
import { Slots } from '../../lib/slots.ts'
import { type HttpClients, type S3Body, sizeOfBody } from './s3-request.ts'
import { S3Error, S3Response, unexplained } from './s3-response.ts'
import {
  emptyPayloadHash,
  encodeQuery,
  type QueryParameters,
  S3Address,
  type S3AddressSettings,
  type S3Credentials,
  SignatureV4,
  unsignedPayload,
} from './signature-v4.ts'

/** The source of the credentials of a client. */
export interface CredentialSource {
  /** The credentials that are valid now. If there are none, they are fetched in the background. */
  current(): S3Credentials | undefined
  /** The credentials that are valid now, fetched first if necessary. */
  get(): Promise<S3Credentials>
  /** S3 has rejected these credentials. Resolves with whether there are different ones now. */
  renew(rejected: S3Credentials): Promise<boolean>
}

export interface SenderSettings extends S3AddressSettings {
  readonly region: string
  readonly credentials: CredentialSource
  readonly attemptTimeoutMs: number
  readonly triesMax: number
  readonly requestsMax: number
  readonly queueMax: number
  /** The environment names an HTTP proxy. Only `fetch` can use it. */
  readonly usesProxy?: boolean
}

/** The clock and the random numbers of the sender. Tests replace them. */
export interface S3Time {
  now(): number
  sleep(ms: number): Promise<void>
  /** From 0 to 1. */
  random(): number
}

export const systemTime: S3Time = { now: () => Date.now(), sleep: (ms) => Bun.sleep(ms), random: () => Math.random() }

export interface S3Request {
  /** The name of the operation in the S3 API, for messages. */
  readonly operation: string
  readonly method: string
  /** Of the object. Without a name, the request is about the bucket. */
  readonly name?: string
  readonly query?: QueryParameters
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: S3Body
  /** A second execution does harm: the request is repeated only if the first certainly had no effect. */
  readonly isOnceOnly?: boolean
  readonly triesMax?: number
  /** Time that the server needs in addition to what the size of the body gives. */
  readonly extraTimeMs?: number
}

export interface WholeResponse {
  readonly headers: Headers
  readonly text: string
}

/** An attempt gets one more second for so many bytes of its body. */
const bytesPerSecondMin = 256 * 1024
const backoffMs = 100
const backoffMaxMs = 10_000
/** If the server asks for a longer pause, the request fails at once. */
const retryAfterMaxMs = 30_000

/** Idle connections are closed after this time, before most servers close them. */
const idleSeconds = 12

const skewCodes: ReadonlySet<string> = new Set(['RequestTimeTooSkewed', 'RequestInTheFuture'])
const expiryCodes: ReadonlySet<string> = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'TokenRefreshRequired',
  // MinIO says so about a temporary key that has expired.
  'InvalidAccessKeyId',
])
/** S3 accepts a difference of 15 minutes. An unexplained rejection is blamed on the clock from this difference on. */
const skewMinMs = 5 * 60_000
/** The resolution of a `Date` header. */
const dateStepMs = 1_000

type Correction = 'clock' | 'credentials'

/** What an attempt was signed with. When it is rejected, another request may have corrected that already. */
interface Attempt {
  readonly credentials: S3Credentials
  /** The time of the server, as it was known when the attempt was signed. */
  at: number
}

/** Sends signed requests to one bucket: limits how many run at once, and repeats those that can be repeated. */
export class RequestSender {
  readonly #settings: SenderSettings
  readonly #time: S3Time
  readonly #address: S3Address
  readonly #signature: SignatureV4
  readonly #slots: Slots
  // A session of its own, so that `close` affects no other client.
  readonly #clients: HttpClients = {
    session: new Bun.FetchSession({ keepAlive: { idleTimeout: idleSeconds } }),
    downloads: new HttpDownloads(idleSeconds * 1000),
  }
  /** Time of the server minus our time; known once the server has rejected a request for its time. */
  #clockOffsetMs = 0

  constructor(settings: SenderSettings, time: S3Time) {
    this.#settings = settings
    this.#time = time
    this.#address = new S3Address(settings)
    this.#signature = new SignatureV4(settings.region)
    this.#slots = new Slots(settings.requestsMax, settings.queueMax, settings.attemptTimeoutMs)
  }

  /** The time of the server, as far as it is known. */
  now(): number {
    return this.#time.now() + this.#clockOffsetMs
  }

  /** Sends a request and reads the whole response. */
  send(request: S3Request): Promise<WholeResponse> {
    return this.#repeat(request, (attempt) =>
      this.#slots.run(async () => {
        const response = await this.#fetch(request, attempt)
        return { headers: response.headers, text: await response.text(this.#settings.attemptTimeoutMs) }
      }),
    )
  }

  /** Sends a request whose response the caller reads. The caller must hold a slot (`takeSlot`) until it has done so. */
  open(request: S3Request): Promise<S3Response> {
    return this.#repeat(request, (attempt) => this.#fetch(request, attempt, true))
  }

  /** Takes one of the requests that may run at once; gives the function that releases it. */
  takeSlot(): Promise<() => void> {
    return this.#slots.take()
  }

  /** Waits before the next attempt. False if the server asks for a pause that is too long. */
  async pause(tries: number, error: S3Error): Promise<boolean> {
    const askedMs = error.retryAfterMs ?? 0
    if (askedMs > retryAfterMaxMs) return false
    const maxMs = Math.min(backoffMaxMs, backoffMs * 2 ** (tries - 1))
    await this.#time.sleep(Math.max(askedMs, this.#time.random() * maxMs))
    return true
  }

  close(): void {
    this.#clients.session.close()
    this.#clients.downloads.close()
  }

  async #repeat<T>(request: S3Request, send: (attempt: Attempt) => Promise<T>): Promise<T> {
    const triesMax = request.triesMax ?? this.#settings.triesMax
    const corrected = new Set<Correction>()
    for (let tries = 1; ; tries += 1) {
      const attempt: Attempt = { credentials: await this.#settings.credentials.get(), at: this.now() }
      try {
        return await send(attempt)
      } catch (error) {
        if (!(error instanceof S3Error)) throw error
        if (await this.#correct(error, attempt, corrected)) continue
        const mayRepeat = request.isOnceOnly ? error.hadNoEffect : error.isTransient
        if (!mayRepeat || tries >= triesMax || !(await this.pause(tries, error))) throw error
      }
    }
  }

  /** Whether the clock or the credentials were wrong and are corrected now. Each is corrected at most once per request. */
  async #correct(error: S3Error, attempt: Attempt, corrected: Set<Correction>): Promise<boolean> {
    if (error.status !== 400 && error.status !== 403) return false
    // The response to a HEAD gives no reason, so both are checked.
    const isUnknown = error.code === unexplained
    if (
      !corrected.has('clock') &&
      (isUnknown || skewCodes.has(error.code)) &&
      this.#learnTime(error, attempt, isUnknown)
    ) {
      corrected.add('clock')
      return true
    }
    if (corrected.has('credentials') || !(isUnknown || expiryCodes.has(error.code))) return false
    corrected.add('credentials')
    return this.#settings.credentials.renew(attempt.credentials)
  }

  /** Whether the attempt was signed with the wrong time, even if another request has corrected the clock since then. */
  #learnTime({ serverTimeMs }: S3Error, attempt: Attempt, isGuess: boolean): boolean {
    if (serverTimeMs === undefined) return false
    const wrongMs = isGuess ? skewMinMs : dateStepMs
    if (Math.abs(serverTimeMs - this.now()) >= wrongMs) this.#clockOffsetMs = serverTimeMs - this.#time.now()
    return Math.abs(serverTimeMs - attempt.at) >= wrongMs
  }

  #fetch(request: S3Request, attempt: Attempt, isLong = false): Promise<S3Response> {
    const { operation, method, body, extraTimeMs = 0 } = request
    const { url, host, path } = this.#address.urlOf(request.name)
    const query = encodeQuery(request.query ?? [])
    const headers = { host, ...(body && { 'content-type': 'application/octet-stream' }), ...request.headers }
    const payloadHash = body === undefined ? emptyPayloadHash : (body.sha256 ?? unsignedPayload)
    attempt.at = this.now()
    const bodyTimeMs = body === undefined ? 0 : (sizeOfBody(body) / bytesPerSecondMin) * 1000
    const signed = {
      operation,
      method,
      url: query === '' ? url : `${url}?${query}`,
      headers: this.#signature.sign({ method, path, query, headers, payloadHash }, attempt.credentials, attempt.at),
      body,
      timeoutMs: this.#settings.attemptTimeoutMs + bodyTimeMs + extraTimeMs,
      isOnFreshConnection: request.isOnceOnly ?? false,
      isDownload: isLong && this.#settings.usesProxy !== true,
    }
    return S3Response.fetch(signed, this.#clients, () => this.now())
  }
}
