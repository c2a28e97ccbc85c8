import { AddressRanges, formatHostAndPort, isAddress, unmapped } from '../../lib/ip-addresses.ts'
import { isPublicAddress } from '../../lib/public-addresses.ts'
import type { Clock } from '../../ports/clock.ts'
import type { SendResult, WebhookMessage, WebhookSender } from '../../ports/webhook-sender.ts'
import { postOnce } from './post.ts'
import { signatureHeaders } from './signature.ts'

export interface SenderSettings {
  readonly timeoutMs: number
  /** Addresses that may be called although they are not public, also without encryption and at any port. */
  readonly allowedNetworks: readonly string[]
  /** Public addresses may be called without encryption. */
  readonly allowsHttp: boolean
  readonly userAgent: string
}

/** Finds the addresses of a host name. */
export type LookUp = (hostname: string) => Promise<readonly string[]>

interface Target {
  readonly hostname: string
  readonly port: number
  readonly isEncrypted: boolean
  readonly path: string
}

const urlLengthMax = 2_048
const systemLookUp: LookUp = async (hostname) => (await Bun.dns.lookup(hostname)).map(({ address }) => address)

/**
 * Sends webhooks over connections of its own, one for each message. The name is looked up once, and the connection goes to an
 * address that was checked: no second look-up can give another one. `fetch` would look up the name itself, use the proxy of the
 * environment, and keep connections.
 */
export class HttpWebhookSender implements WebhookSender {
  readonly #settings: SenderSettings
  readonly #clock: Clock
  readonly #lookUp: LookUp
  readonly #allowed: AddressRanges

  constructor(settings: SenderSettings, clock: Clock, lookUp: LookUp = systemLookUp) {
    this.#settings = settings
    this.#clock = clock
    this.#lookUp = lookUp
    this.#allowed = new AddressRanges(settings.allowedNetworks)
  }

  findFault(url: string): string | undefined {
    const target = parseTarget(url)
    if (typeof target === 'string') return target
    if (isAddress(target.hostname)) return this.#findAddressFault(target, target.hostname)
    const isPossible = target.isEncrypted || this.#settings.allowsHttp || this.#settings.allowedNetworks.length > 0
    return isPossible ? undefined : 'must begin with https://'
  }

  async send(message: WebhookMessage, signal: AbortSignal): Promise<SendResult> {
    const target = parseTarget(message.url)
    if (typeof target === 'string') return { failure: `the URL ${target}` }
    const limit = AbortSignal.any([signal, AbortSignal.timeout(this.#settings.timeoutMs)])
    try {
      const addresses = await this.#findAddresses(target, limit)
      if (typeof addresses === 'string') return { failure: addresses }
      const [address = ''] = addresses
      const { isEncrypted, hostname, port } = target
      const head = await postOnce(
        { address, port, serverName: isEncrypted ? hostname : undefined },
        this.#format(target, message),
        limit,
      )
      return { status: head.status, retryAfterMs: this.#parseRetryAfter(head.headers.get('retry-after')) }
    } catch (error) {
      if (limit.aborted) return { failure: `no answer within ${this.#settings.timeoutMs} ms` }
      return { failure: describe(error) }
    }
  }

  /** A text if no address may be called. */
  async #findAddresses(target: Target, signal: AbortSignal): Promise<readonly string[] | string> {
    const { hostname } = target
    const found = isAddress(hostname) ? [hostname] : await abortable(this.#lookUp(hostname), signal)
    const addresses = [...new Set(found.map(unmapped))]
    const allowed = addresses.filter((address) => this.#findAddressFault(target, address) === undefined)
    if (allowed.length > 0) return allowed
    if (addresses.length === 0) return 'the host name has no address'
    return `the address of the host ${this.#findAddressFault(target, addresses[0] ?? '') ?? ''}`
  }

  #findAddressFault({ isEncrypted, port }: Target, address: string): string | undefined {
    if (this.#allowed.has(address)) return undefined
    if (!isPublicAddress(address)) return 'is not public, and not in webhooks.allowed_networks'
    if (!isEncrypted && !this.#settings.allowsHttp) return 'may be called with https:// only'
    // Below 1024 are the ports of mail, names, shells and files, whose servers may take a request for commands.
    if (port < 1024 && port !== 80 && port !== 443) return 'must have the port 80, 443, or one from 1024 on'
    return undefined
  }

  #format({ hostname, port, isEncrypted, path }: Target, message: WebhookMessage): Uint8Array {
    const body = new TextEncoder().encode(message.body)
    const usualPort = isEncrypted ? 443 : 80
    const headers: Readonly<Record<string, string>> = {
      host: port === usualPort ? formatHost(hostname) : formatHostAndPort(hostname, port),
      'user-agent': this.#settings.userAgent,
      accept: '*/*',
      connection: 'close',
      'content-type': message.contentType,
      'content-length': String(body.length),
      ...signatureHeaders(message, this.#clock.now()),
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'), body])
  }

  /** RFC 9110, 10.2.3: a number of seconds or a date. */
  #parseRetryAfter(value: string | null): number | undefined {
    if (value === null) return undefined
    if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
    const time = Date.parse(value)
    return Number.isNaN(time) ? undefined : Math.max(0, time - this.#clock.now())
  }
}

/** A text, which continues the name of the field, if the URL cannot be called. */
function parseTarget(url: string): Target | string {
  if (url.length > urlLengthMax) return `must be at most ${urlLengthMax} characters`
  const parsed = URL.parse(url)
  if (parsed === null) return 'must be a URL such as https://ci.example.com/hook'
  const { protocol, hostname, port, pathname, search, username, password } = parsed
  if (protocol !== 'https:' && protocol !== 'http:') return 'must begin with https://'
  if (username !== '' || password !== '') return 'must not contain a user name or a password'
  const isEncrypted = protocol === 'https:'
  return {
    hostname: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? (isEncrypted ? 443 : 80) : Number(port),
    isEncrypted,
    path: `${pathname}${search}`,
  }
}

function formatHost(hostname: string): string {
  return hostname.includes(':') ? `[${hostname}]` : hostname
}

function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  return Promise.race([work, aborted.promise]).finally(() => signal.removeEventListener('abort', abort))
}

/** The code of the system or of this program. It contains no bytes of the other end. */
function describe(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  return `the request failed: ${code.slice(0, 64)}`
}
