import { RegistryRefusal } from '../oci/errors.ts'
import type { Credential } from '../ports/identity.ts'

export type Carrier = 'authorization' | 'api-key-header' | 'query' | 'cookie'

export interface PresentedCredential {
  readonly carrier: Carrier
  /** Undefined when the carrier is present but malformed or repeated: the credentials are then invalid, not absent. */
  readonly credential: Credential | undefined
}

const cookieName = 'svc-auth'
const secretLengthMax = 8_192
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
// Two different secrets must not be decoded to the same text, neither by a replacement character nor by a dropped BOM.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads the six carriers of spec.md. The first carrier that is present decides; a later one never replaces a bad one.
 *
 * Bun joins repeated header lines with a comma. No key, token or Basic credential in a header contains a comma, so a
 * value with a comma is either repeated or malformed. Both are invalid: two readers could pick different credentials.
 */
export function findCredential(headers: Headers, query: URLSearchParams): PresentedCredential | undefined {
  const authorization = headers.get('authorization')
  if (authorization !== null && !isEmptyBasic(authorization)) {
    const credential = authorization.includes(',') ? undefined : parseAuthorization(authorization)
    return { carrier: 'authorization', credential }
  }
  const apiKey = headers.get('x-api-key')
  if (apiKey !== null) {
    const credential = apiKey.includes(',') ? undefined : toCredential('api-key', apiKey.trim())
    return { carrier: 'api-key-header', credential }
  }
  const keys = query.getAll('apiKey')
  if (keys.length > 0) return { carrier: 'query', credential: toOnlyCredential('api-key', keys) }
  const tokens = findCookies(headers.get('cookie'))
  if (tokens.length > 0) return { carrier: 'cookie', credential: toOnlyCredential('bearer', tokens) }
  return undefined
}

/** Without credentials, Skopeo and podman answer a Basic challenge with an empty name and an empty password. */
function isEmptyBasic(header: string): boolean {
  return header.endsWith(' Og==') && header.toLowerCase() === 'basic og=='
}

function toOnlyCredential(
  kind: 'api-key' | 'bearer',
  [secret = '', ...others]: readonly string[],
): Credential | undefined {
  return others.length > 0 ? undefined : toCredential(kind, secret)
}

function toCredential(kind: 'api-key' | 'bearer', secret: string): Credential | undefined {
  return isSecret(secret) ? { kind, secret } : undefined
}

function isSecret(text: string): boolean {
  return text !== '' && text.length <= secretLengthMax
}

function parseAuthorization(header: string): Credential | undefined {
  const space = header.indexOf(' ')
  if (space === -1) return undefined
  const scheme = header.slice(0, space).toLowerCase()
  const value = header.slice(space + 1).trim()
  if (scheme === 'bearer') return toCredential('bearer', value)
  if (scheme === 'basic') return parseBasic(value)
  return undefined
}

function parseBasic(encoded: string): Credential | undefined {
  if (encoded.length > 2 * secretLengthMax || !base64.test(encoded)) return undefined
  try {
    const text = utf8.decode(Uint8Array.fromBase64(encoded))
    const colon = text.indexOf(':')
    return colon === -1 ? undefined : toLogin(text.slice(0, colon), text.slice(colon + 1))
  } catch {
    return undefined
  }
}

const userNameLengthMax = 255
/** RFC 7617, 2: "a user-id containing a colon character is invalid", and neither part may have control characters. */
const notInUserName = /[\p{Cc}:]/u

/** With a reserved user name, the password is an API key or a token. Any other user name is the name of a user. */
export function toLogin(userName: string, secret: string): Credential | undefined {
  if (userName === 'apikey') return toCredential('api-key', secret)
  if (userName === 'bearer') return toCredential('bearer', secret)
  const isName = userName !== '' && userName.length <= userNameLengthMax && !notInUserName.test(userName)
  return isName && isSecret(secret) ? { kind: 'login', userName, secret } : undefined
}

function findCookies(header: string | null): readonly string[] {
  if (header === null) return []
  return header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${cookieName}=`))
    .map((pair) => pair.slice(cookieName.length + 1))
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Refuses a request that another site made a browser send with its cookie, unless the method is safe. `Sec-Fetch-Site`
 * must be `same-origin` or `none`. Without that header, `Origin` must be the origin of this server. A request with
 * neither header is accepted, because every browser sends at least one of them with an unsafe method.
 */
export function checkSameSite(method: string, headers: Headers, ownOrigin: string | undefined): void {
  if (safeMethods.has(method)) return
  const site = headers.get('sec-fetch-site')
  if (site !== null) {
    if (site === 'same-origin' || site === 'none') return
    throw new RegistryRefusal('cross-site-request')
  }
  const origin = headers.get('origin')
  if (origin !== null && origin !== ownOrigin) throw new RegistryRefusal('cross-site-request')
}
