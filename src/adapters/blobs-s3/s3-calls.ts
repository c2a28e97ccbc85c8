import { Slots } from '../../lib/slots.ts'
import type { CredentialSource, S3Credentials } from './credential-source.ts'
import { S3Address } from './s3-address.ts'
import { type S3Body, sha256Of, sizeOfBody } from './s3-body.ts'
import { S3Exchange, type S3Request } from './s3-exchange.ts'
import { S3Fault, unexplained } from './s3-fault.ts'
import { emptyPayloadHash, encodeQuery, SignatureV4, unsignedPayload } from './signature-v4.ts'

export interface S3CallSettings {
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  readonly isPathStyle: boolean
  readonly credentials: CredentialSource
  readonly checksum: 'sha256' | 'crc32' | 'none'
  readonly attemptTimeoutMs: number
  readonly triesMax: number
  readonly requestsMax: number
  readonly queueMax: number
}

/** Time and chance, so that tests own both. */
export interface S3Time {
  now(): number
  sleep(ms: number): Promise<void>
  /** From 0 to 1. */
  random(): number
}

export const systemTime: S3Time = { now: () => Date.now(), sleep: (ms) => Bun.sleep(ms), random: () => Math.random() }

export interface S3Call {
  /** As S3 names it: for messages. */
  readonly operation: string
  readonly method: string
  /** Of the object; without it, the bucket is meant. */
  readonly name?: string
  readonly query?: readonly (readonly [name: string, value: string])[]
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: S3Body
  /** The body is a document of ours, and proved by its hash whatever the setting says. */
  readonly isDocument?: boolean
  /** Carried out twice, it does harm: repeated only where it was not carried out, for sure. */
  readonly isOnceOnly?: boolean
  readonly triesMax?: number
  /** More than what the body's size gives. */
  readonly extraTimeMs?: number
}

export interface S3Answer {
  readonly headers: Headers
  readonly text: string
}

/** So many bytes of a body give an attempt one more second. */
const bytesPerSecondMin = 256 * 1024
const backOffMs = 100
const backOffMaxMs = 10_000
/** Who shall wait longer than this is told that it failed. */
const retryAfterMaxMs = 30_000

const skewCodes: ReadonlySet<string> = new Set(['RequestTimeTooSkewed', 'RequestInTheFuture'])
const expiryCodes: ReadonlySet<string> = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'TokenRefreshRequired',
  // MinIO, about a key that was temporary.
  'InvalidAccessKeyId',
])
/** What a refusal without a reason may come from: S3 allows 15 minutes. */
const skewMinMs = 5 * 60_000
/** A `Date` header knows no less. */
const dateStepMs = 1_000

type Cure = 'clock' | 'credentials'

/** What an attempt was signed with: when it is refused, another may have found out already what was wrong with it. */
interface Signed {
  readonly credentials: S3Credentials
  /** By the server's clock, as we knew it then. */
  at: number
}

/** Signed requests to one bucket: so many at once, each in its time, repeated where that does no harm. */
export class S3Calls {
  readonly #settings: S3CallSettings
  readonly #time: S3Time
  readonly #address: S3Address
  readonly #signature: SignatureV4
  readonly #slots: Slots
  // Of our own, so that closing it cannot hit anybody else; an idle connection is dropped before most servers do it.
  readonly #session = new Bun.FetchSession({ keepAlive: { idleTimeout: 12 } })
  /** What the server's clock is ahead of ours, where it took our time for wrong. */
  #clockOffsetMs = 0

  constructor(settings: S3CallSettings, time: S3Time) {
    this.#settings = settings
    this.#time = time
    this.#address = new S3Address(settings)
    this.#signature = new SignatureV4(settings.region)
    this.#slots = new Slots(settings.requestsMax, settings.queueMax, settings.attemptTimeoutMs)
  }

  /** The server's time, as far as we know it. */
  now(): number {
    return this.#time.now() + this.#clockOffsetMs
  }

  /** The whole answer. */
  send(call: S3Call): Promise<S3Answer> {
    return this.#repeat(call, (signed) =>
      this.#slots.run(async () => {
        const exchange = await this.#begin(call, signed)
        return { headers: exchange.headers, text: await exchange.text(this.#settings.attemptTimeoutMs) }
      }),
    )
  }

  /** The begin of an answer. Takes no slot: whoever reads it holds one. */
  open(call: S3Call): Promise<S3Exchange> {
    return this.#repeat(call, (signed) => this.#begin(call, signed))
  }

  /** A slot, until the function is called that this gives. */
  takeSlot(): Promise<() => void> {
    return this.#slots.take()
  }

  /** Waits before the next try; false where the server wants more patience than there is. */
  async pause(tries: number, fault: S3Fault): Promise<boolean> {
    const asked = fault.retryAfterMs ?? 0
    if (asked > retryAfterMaxMs) return false
    const most = Math.min(backOffMaxMs, backOffMs * 2 ** (tries - 1))
    await this.#time.sleep(Math.max(asked, this.#time.random() * most))
    return true
  }

  close(): void {
    this.#session.close()
  }

  async #repeat<T>(call: S3Call, attempt: (signed: Signed) => Promise<T>): Promise<T> {
    const triesMax = call.triesMax ?? this.#settings.triesMax
    const cured = new Set<Cure>()
    for (let tries = 1; ; tries += 1) {
      const signed: Signed = { credentials: await this.#settings.credentials.get(), at: this.now() }
      try {
        return await attempt(signed)
      } catch (error) {
        if (!(error instanceof S3Fault)) throw error
        if (await this.#cure(error, signed, cured)) continue
        const mayRepeat = call.isOnceOnly ? error.isNothingDone : error.isTransient
        if (!mayRepeat || tries >= triesMax || !(await this.pause(tries, error))) throw error
      }
    }
  }

  /** What was refused for its time or its token is worth another try once that is mended; each once in a call. */
  async #cure(fault: S3Fault, signed: Signed, cured: Set<Cure>): Promise<boolean> {
    if (fault.status !== 400 && fault.status !== 403) return false
    // A HEAD is refused without a reason: then both are looked into.
    const isUnknown = fault.code === unexplained
    if (!cured.has('clock') && (isUnknown || skewCodes.has(fault.code)) && this.#learnTime(fault, signed, isUnknown)) {
      cured.add('clock')
      return true
    }
    if (cured.has('credentials') || !(isUnknown || expiryCodes.has(fault.code))) return false
    cured.add('credentials')
    return this.#settings.credentials.renew(signed.credentials)
  }

  /** Whether the time of the signature was wrong. It is, too, where another has set our clock right in the meantime. */
  #learnTime({ serverTimeMs }: S3Fault, signed: Signed, isGuess: boolean): boolean {
    if (serverTimeMs === undefined) return false
    const wrongMs = isGuess ? skewMinMs : dateStepMs
    if (Math.abs(serverTimeMs - this.now()) >= wrongMs) this.#clockOffsetMs = serverTimeMs - this.#time.now()
    return Math.abs(serverTimeMs - signed.at) >= wrongMs
  }

  async #begin(call: S3Call, signed: Signed): Promise<S3Exchange> {
    const { body, isDocument = false, extraTimeMs = 0 } = call
    const { url, host, path } = this.#address.targetOf(call.name)
    const query = encodeQuery(call.query ?? [])
    const type = isDocument ? 'application/xml' : 'application/octet-stream'
    const signable = {
      method: call.method,
      path,
      query,
      headers: { host, ...(body && { 'content-type': type }), ...call.headers },
      payloadHash: await this.#payloadHashOf(body, isDocument),
    }
    signed.at = this.now()
    const bodyTimeMs = body === undefined ? 0 : (sizeOfBody(body) / bytesPerSecondMin) * 1000
    const request: S3Request = {
      operation: call.operation,
      method: call.method,
      url: query === '' ? url : `${url}?${query}`,
      headers: this.#signature.sign(signable, signed.credentials, signed.at),
      body,
      timeoutMs: this.#settings.attemptTimeoutMs + bodyTimeMs + extraTimeMs,
      isOnFreshConnection: call.isOnceOnly ?? false,
    }
    return S3Exchange.begin(request, this.#session, () => this.now())
  }

  async #payloadHashOf(body: S3Body | undefined, isDocument: boolean): Promise<string> {
    if (body === undefined) return emptyPayloadHash
    return isDocument || this.#settings.checksum === 'sha256' ? sha256Of(body) : unsignedPayload
  }
}
