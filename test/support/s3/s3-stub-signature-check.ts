// Whom the S3 stub lets in: signatures in the header and in the query, checked as strictly as the strictest server does.
import { timingSafeEqual } from 'node:crypto'
import { parseS3Query } from './s3-operation.ts'
import { algorithm, canonicalRequest, type S3Keys, signatureOf, stampOf, unsignedPayload } from './s3-signature.ts'
import { S3Refusal } from './s3-stub-xml.ts'

export interface Gate {
  readonly region: string
  /** The keys that are good; others are unknown, or were good once. */
  readonly keys: S3Keys
  readonly expiredAccessKeys: ReadonlySet<string>
  readonly nowMs: number
}

export interface SignedRequest {
  readonly method: string
  readonly target: string
  readonly headers: Headers
}

interface Claim {
  readonly accessKey: string
  readonly scope: readonly string[]
  readonly signedNames: readonly string[]
  readonly signature: string
  readonly stamp: string
  readonly sessionToken: string | undefined
  readonly payloadHash: string
}

const skewMaxMs = 15 * 60_000
const lifetimeMaxSeconds = 7 * 24 * 3_600

/** Throws an `S3Refusal` unless the request is signed, by the right keys, for this moment. */
export function checkSignature(request: SignedRequest, gate: Gate): void {
  const mark = request.target.indexOf('?')
  const query = new Map(mark === -1 ? [] : parseS3Query(request.target.slice(mark + 1)))
  const isPresigned = query.has('X-Amz-Signature') || query.has('X-Amz-Algorithm')
  if (isPresigned && request.headers.has('authorization'))
    throw new S3Refusal(400, 'InvalidArgument', 'Only one auth mechanism allowed')
  const claim = isPresigned ? readQuery(query, request.headers, gate.nowMs) : readHeaders(request.headers, gate.nowMs)
  checkScope(claim, gate.region)
  checkKeys(claim, gate)
  checkSignedNames(claim.signedNames, request.headers)
  const canonical = canonicalRequest({ ...request, signedNames: claim.signedNames, payloadHash: claim.payloadHash })
  const expected = signatureOf(canonical, gate.keys.secretKey, { stamp: claim.stamp, region: gate.region })
  const given = Buffer.from(claim.signature)
  if (given.length !== expected.length || !timingSafeEqual(given, Buffer.from(expected)))
    throw new S3Refusal(403, 'SignatureDoesNotMatch', 'The signature does not match the one that was calculated')
}

function readHeaders(headers: Headers, nowMs: number): Claim {
  const authorization = headers.get('authorization')
  if (authorization === null) throw denied('There is no signature')
  const form = /^AWS4-HMAC-SHA256 Credential=([^\s,]+), ?SignedHeaders=([^\s,]+), ?Signature=([0-9a-f]{64})$/
  const [, credential, names, signature] = form.exec(authorization) ?? []
  if (credential === undefined || names === undefined || signature === undefined)
    throw new S3Refusal(400, 'AuthorizationHeaderMalformed', 'The authorization header cannot be read')
  const stamp = headers.get('x-amz-date') ?? ''
  const signedAt = parseStamp(stamp)
  if (signedAt === undefined) throw denied('A valid x-amz-date is required')
  if (Math.abs(nowMs - signedAt) > skewMaxMs)
    throw new S3Refusal(403, 'RequestTimeTooSkewed', 'The difference between the request time and ours is too large')
  const payloadHash = headers.get('x-amz-content-sha256')
  if (payloadHash === null)
    throw new S3Refusal(400, 'InvalidRequest', 'Missing required header for this request: x-amz-content-sha256')
  const [accessKey = '', ...scope] = credential.split('/')
  const sessionToken = headers.get('x-amz-security-token') ?? undefined
  return { accessKey, scope, signedNames: names.split(';'), signature, stamp, sessionToken, payloadHash }
}

function readQuery(query: ReadonlyMap<string, string>, headers: Headers, nowMs: number): Claim {
  const take = (name: string): string => {
    const value = query.get(`X-Amz-${name}`)
    if (value === undefined) throw badQuery(`X-Amz-${name} is missing`)
    return value
  }
  if (take('Algorithm') !== algorithm) throw badQuery('X-Amz-Algorithm is not ours')
  const [accessKey = '', ...scope] = take('Credential').split('/')
  const stamp = take('Date')
  const signedAt = parseStamp(stamp)
  const lifetimeSeconds = take('Expires')
  if (signedAt === undefined) throw badQuery('X-Amz-Date cannot be read')
  if (!/^[1-9]\d{0,6}$/.test(lifetimeSeconds) || Number(lifetimeSeconds) > lifetimeMaxSeconds)
    throw badQuery('X-Amz-Expires must be from one second to a week')
  if (signedAt > nowMs + skewMaxMs) throw denied('Request is not valid yet')
  if (nowMs > signedAt + Number(lifetimeSeconds) * 1_000) throw denied('Request has expired')
  return {
    accessKey,
    scope,
    signedNames: take('SignedHeaders').split(';'),
    signature: take('Signature'),
    stamp,
    sessionToken: query.get('X-Amz-Security-Token'),
    payloadHash: headers.get('x-amz-content-sha256') ?? unsignedPayload,
  }
}

function checkScope({ scope, stamp }: Claim, region: string): void {
  const [day, place, service, end, ...more] = scope
  if (more.length > 0 || end !== 'aws4_request' || service !== 's3' || day !== stamp.slice(0, 8))
    throw new S3Refusal(400, 'AuthorizationHeaderMalformed', 'The credential scope is not DAY/REGION/s3/aws4_request')
  if (place !== region)
    throw new S3Refusal(400, 'AuthorizationHeaderMalformed', `The region '${place}' is wrong; expecting '${region}'`)
}

function checkKeys({ accessKey, sessionToken }: Claim, { keys, expiredAccessKeys }: Gate): void {
  if (expiredAccessKeys.has(accessKey)) throw new S3Refusal(400, 'ExpiredToken', 'The provided token has expired')
  if (accessKey !== keys.accessKey || (keys.sessionToken !== undefined && sessionToken === undefined))
    throw new S3Refusal(403, 'InvalidAccessKeyId', 'The access key does not exist in our records')
  if (sessionToken !== keys.sessionToken) throw new S3Refusal(400, 'InvalidToken', 'The provided token is malformed')
}

function checkSignedNames(names: readonly string[], headers: Headers): void {
  const sorted = [...new Set(names.map((name) => name.toLowerCase()))].sort()
  if (sorted.join(';') !== names.join(';'))
    throw new S3Refusal(400, 'AuthorizationHeaderMalformed', 'The signed headers must be in order, and in lower case')
  const needed = ['host', ...[...headers.keys()].filter((name) => name.startsWith('x-amz-'))]
  const missing = needed.filter((name) => !names.includes(name))
  if (missing.length > 0) throw denied(`There were headers present which were not signed: ${missing.join(', ')}`)
}

function parseStamp(stamp: string): number | undefined {
  const time = Date.parse(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  return Number.isNaN(time) || stampOf(time) !== stamp ? undefined : time
}

const denied = (message: string) => new S3Refusal(403, 'AccessDenied', message)
const badQuery = (message: string) => new S3Refusal(400, 'AuthorizationQueryParametersError', message)
