import { RegistryRefusal } from '../oci/errors.ts'
import type { Credential } from '../ports/identity.ts'

export type Carrier = 'authorization' | 'api-key-header' | 'query' | 'cookie'

export interface PresentedCredential {
  readonly carrier: Carrier
  /** Undefined when the carrier is there but holds nothing that could be one: that is wrong, not absent. */
  readonly credential: Credential | undefined
}

const cookieName = 'svc-auth'
const secretLengthMax = 8_192
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
// Two secrets must not become one: neither by a sign for what is no text, nor by a mark at the start that is dropped.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The six carriers of spec.md. The first that is present decides; a bad one is never rescued by another behind it.
 *
 * A header line given twice reaches us as one with a comma. No key, token or Basic credential holds a comma, so a comma
 * means that two were sent and two readers could pick different ones.
 */
export function findCredential(headers: Headers, query: URLSearchParams): PresentedCredential | undefined {
  const authorization = headers.get('authorization')
  const apiKey = headers.get('x-api-key')
  refuseRepeated(authorization)
  refuseRepeated(apiKey)
  if (authorization !== null && !isEmptyBasic(authorization))
    return { carrier: 'authorization', credential: parseAuthorization(authorization) }
  if (apiKey !== null) {
    return { carrier: 'api-key-header', credential: toCredential('api-key', apiKey.trim()) }
  }
  const queryKeys = query.getAll('apiKey')
  if (queryKeys.length > 1) throw new RegistryRefusal('credentials-ambiguous')
  if (queryKeys[0] !== undefined) return { carrier: 'query', credential: toCredential('api-key', queryKeys[0]) }

  const token = findCookie(headers.get('cookie'))
  if (token !== undefined) return { carrier: 'cookie', credential: toCredential('bearer', token) }
  return undefined
}

/** Skopeo and podman, asked for Basic credentials that nobody gave them, send an empty name with an empty password. */
function isEmptyBasic(header: string): boolean {
  return header.endsWith(' Og==') && header.toLowerCase() === 'basic og=='
}

function refuseRepeated(value: string | null): void {
  if (value?.includes(',')) throw new RegistryRefusal('credentials-ambiguous')
}

function toCredential(kind: Credential['kind'], secret: string): Credential | undefined {
  return secret === '' || secret.length > secretLengthMax ? undefined : { kind, secret }
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
    return parseUserAndPassword(utf8.decode(Uint8Array.fromBase64(encoded)))
  } catch {
    return undefined
  }
}

/** `name:password`; the name says what the password is. */
export function parseUserAndPassword(text: string): Credential | undefined {
  if (text.startsWith('apikey:')) return toCredential('api-key', text.slice('apikey:'.length))
  if (text.startsWith('bearer:')) return toCredential('bearer', text.slice('bearer:'.length))
  return undefined
}

function findCookie(header: string | null): string | undefined {
  if (header === null) return undefined
  const values = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${cookieName}=`))
  if (values.length > 1) throw new RegistryRefusal('credentials-ambiguous')
  return values[0]?.slice(cookieName.length + 1)
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * A browser sends its cookie with requests that another site makes it send. Such a request may look, but not act:
 * `Sec-Fetch-Site` must say that it is our own page's, or where there is none, `Origin` must name us.
 */
export function checkSameSite(method: string, headers: Headers, ownOrigin: string | undefined): void {
  if (safeMethods.has(method)) return
  const site = headers.get('sec-fetch-site')
  if (site !== null) {
    if (site === 'same-origin' || site === 'none') return
    throw new RegistryRefusal('cross-site-request')
  }
  const origin = headers.get('origin')
  if (origin === null || ownOrigin === undefined || origin !== ownOrigin)
    throw new RegistryRefusal('cross-site-request')
}
