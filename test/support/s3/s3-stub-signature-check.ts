// Checks signatures in the header and in the query as strictly as the strictest server does: the stub signs the request
// as it came with its own keys, and compares.
import { parseS3Query } from './s3-operation.ts'
import { payloadHeader, presignQuery, type S3Keys, signHeaders, unsignedPayload } from './s3-signature.ts'
import { S3Refusal } from './s3-stub-xml.ts'

export interface Gate {
  readonly region: string
  /** The valid keys. */
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
  readonly credential: string
  readonly signedNames: readonly string[]
  readonly signature: string
  readonly timeMs: number
  readonly sessionToken: string | undefined
}

const skewMaxMs = 15 * 60_000
const lifetimeMaxSeconds = 7 * 24 * 3_600
const headerForm = /^AWS4-HMAC-SHA256 Credential=([^\s,]+), ?SignedHeaders=([^\s,]+), ?Signature=([0-9a-f]{64})$/

/** Throws an `S3Refusal` unless the request is signed with the valid keys for this moment. */
export async function checkSignature({ method, target, headers }: SignedRequest, gate: Gate): Promise<void> {
  const { pathname, search } = new URL(target, 'http://stub')
  const pairs = parseS3Query(search.slice(1))
  const query = new Map(pairs)
  const isPresigned = query.has('X-Amz-Signature') || query.has('X-Amz-Algorithm')
  if (isPresigned && headers.has('authorization')) throw new S3Refusal(400, 'InvalidArgument', 'two signatures')
  const claim = isPresigned ? readQuery(query, gate.nowMs) : readHeaders(headers, gate.nowMs)
  checkKeys(claim, gate)
  checkSignedNames(claim.signedNames, headers)

  const own = pairs.filter(([name]) => !name.startsWith('X-Amz-'))
  const url = `http://stub${pathname}?${new URLSearchParams(own)}`
  const signed = Object.fromEntries(claim.signedNames.map((name) => [name, headers.get(name) ?? '']))
  const request = { method, url, region: gate.region, timeMs: claim.timeMs }
  const payload = { [payloadHeader]: headers.get(payloadHeader) ?? unsignedPayload }
  const expected = isPresigned
    ? (await presignQuery({ ...request, headers: { ...signed, ...payload } }, expiresOf(query), gate.keys))[
        'X-Amz-Signature'
      ]
    : headerForm.exec((await signHeaders({ ...request, headers: signed }, gate.keys))['authorization'] ?? '')?.[3]
  if (claim.signature !== expected) throw new S3Refusal(403, 'SignatureDoesNotMatch')
}

function readHeaders(headers: Headers, nowMs: number): Claim {
  const authorization = headers.get('authorization')
  if (authorization === null) throw denied('There is no signature')
  const [, credential, names, signature] = headerForm.exec(authorization) ?? []
  if (credential === undefined || names === undefined || signature === undefined)
    throw new S3Refusal(400, 'AuthorizationHeaderMalformed')
  const timeMs = parseStamp(headers.get('x-amz-date') ?? '')
  if (Math.abs(nowMs - timeMs) > skewMaxMs) throw new S3Refusal(403, 'RequestTimeTooSkewed')
  if (!headers.has(payloadHeader)) throw new S3Refusal(400, 'InvalidRequest', `${payloadHeader} is missing`)
  const sessionToken = headers.get('x-amz-security-token') ?? undefined
  return { credential, signedNames: names.split(';'), signature, timeMs, sessionToken }
}

function readQuery(query: ReadonlyMap<string, string>, nowMs: number): Claim {
  const take = (name: string): string => query.get(`X-Amz-${name}`) ?? ''
  if (take('Algorithm') !== 'AWS4-HMAC-SHA256') throw badQuery('X-Amz-Algorithm is not ours')
  const timeMs = parseStamp(take('Date'))
  const lifetimeMs = expiresOf(query) * 1_000
  if (timeMs > nowMs + skewMaxMs) throw denied('Request is not valid yet')
  if (nowMs > timeMs + lifetimeMs) throw denied('Request has expired')
  return {
    credential: take('Credential'),
    signedNames: take('SignedHeaders').split(';'),
    signature: take('Signature'),
    timeMs,
    sessionToken: query.get('X-Amz-Security-Token'),
  }
}

function expiresOf(query: ReadonlyMap<string, string>): number {
  const text = query.get('X-Amz-Expires') ?? ''
  if (!/^[1-9]\d{0,6}$/.test(text) || Number(text) > lifetimeMaxSeconds)
    throw badQuery('X-Amz-Expires must be from one second to a week')
  return Number(text)
}

function checkKeys({ credential, sessionToken, timeMs }: Claim, { keys, region, expiredAccessKeys }: Gate): void {
  const [accessKey = '', ...scope] = credential.split('/')
  const day = new Date(timeMs).toISOString().slice(0, 10).replaceAll('-', '')
  if (scope.join('/') !== `${day}/${region}/s3/aws4_request`)
    throw new S3Refusal(400, 'AuthorizationHeaderMalformed', `The scope must be ${day}/${region}/s3/aws4_request`)
  if (expiredAccessKeys.has(accessKey)) throw new S3Refusal(400, 'ExpiredToken')
  if (accessKey !== keys.accessKey || (keys.sessionToken !== undefined && sessionToken === undefined))
    throw new S3Refusal(403, 'InvalidAccessKeyId')
  if (sessionToken !== keys.sessionToken) throw new S3Refusal(400, 'InvalidToken')
}

function checkSignedNames(names: readonly string[], headers: Headers): void {
  const sorted = [...new Set(names.map((name) => name.toLowerCase()))].sort()
  if (sorted.join(';') !== names.join(';'))
    throw new S3Refusal(400, 'AuthorizationHeaderMalformed', 'The signed headers must be in order, and in lower case')
  const needed = ['host', ...[...headers.keys()].filter((name) => name.startsWith('x-amz-'))]
  const missing = needed.filter((name) => !names.includes(name))
  if (missing.length > 0) throw denied(`There were headers present which were not signed: ${missing.join(', ')}`)
}

function parseStamp(stamp: string): number {
  const time = Date.parse(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  if (!/^\d{8}T\d{6}Z$/.test(stamp) || Number.isNaN(time)) throw denied('A valid date is required')
  return time
}

const denied = (message: string) => new S3Refusal(403, 'AccessDenied', message)
const badQuery = (message: string) => new S3Refusal(400, 'AuthorizationQueryParametersError', message)
