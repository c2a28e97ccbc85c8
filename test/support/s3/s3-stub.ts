// A strict S3 server in this process: what no lenient one would notice, it refuses. It keeps one bucket in memory.
import { parseS3Target, type S3Operation, type S3Target } from './s3-operation.ts'
import type { S3Server } from './s3-server.ts'
import type { S3Keys } from './s3-signature.ts'
import { StubBucket } from './s3-stub-bucket.ts'
import { answerCall, checkBody } from './s3-stub-calls.ts'
import { checkSignature, type Gate } from './s3-stub-signature-check.ts'
import { S3Refusal, writeXml } from './s3-stub-xml.ts'

export interface S3StubOptions {
  readonly bucket?: string
  readonly region?: string
  readonly keys?: S3Keys
  /** What `url` is for: the bucket in the path, or in the host's name. The server itself takes both. */
  readonly isPathStyle?: boolean
  /** Every part but the last must have as many bytes; S3 itself wants 5 MiB. */
  readonly partBytesMin?: number
  /** No list has longer pages. */
  readonly pageSize?: number
  /** Refuses objects that ask for no server-side encryption. */
  readonly mustEncrypt?: boolean
}

export interface S3StubRequest {
  readonly method: string
  /** Path and query as they came. */
  readonly target: string
  readonly operation: S3Operation | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly status: number
}

export interface S3Stub extends S3Server {
  objects(): ReadonlyMap<string, Uint8Array>
  uploads(): readonly { readonly name: string; readonly id: string }[]
  requests(): readonly S3StubRequest[]
  /** Puts an object into the bucket, or removes it, without a request. */
  plant(name: string, bytes: Uint8Array | undefined): void
  /** From now on these are the keys; those of before have expired. */
  changeKeys(keys: S3Keys): void
  moveClock(byMs: number): void
}

interface StubState {
  readonly options: S3StubOptions
  readonly bucketName: string
  readonly bucket: StubBucket
  readonly log: S3StubRequest[]
  gate: Omit<Gate, 'nowMs'>
  clockOffsetMs: number
}

const bodyBytesMax = 5 * 1_024 ** 3
const mebibyte = 1_024 ** 2

export function startS3Stub(options: S3StubOptions = {}): S3Stub {
  const region = options.region ?? 'eu-test-1'
  const keys = options.keys ?? { accessKey: 'BERTHSTUBKEY', secretKey: 'not/so+secret' }
  const state: StubState = {
    options,
    bucketName: options.bucket ?? 'stub-bucket',
    bucket: new StubBucket(options.partBytesMin ?? 5 * mebibyte),
    log: [],
    gate: { region, keys, expiredAccessKeys: new Set() },
    clockOffsetMs: 0,
  }
  const isPathStyle = options.isPathStyle ?? true
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    maxRequestBodySize: bodyBytesMax,
    fetch: (request) => answer(state, request),
  })
  return {
    name: 'stub',
    version: '1',
    url: `http://${isPathStyle ? '127.0.0.1' : 'localhost'}:${server.port}`,
    region,
    bucket: state.bucketName,
    isPathStyle,
    ...keys,
    objects: () => new Map([...state.bucket.objects].map(([name, { bytes }]) => [name, bytes])),
    uploads: () => [...state.bucket.uploads.values()].map(({ name, id }) => ({ name, id })),
    requests: () => state.log,
    plant(name, bytes) {
      const rest = { modifiedAt: now(state), contentType: 'binary/octet-stream', encryption: undefined }
      if (bytes === undefined) state.bucket.objects.delete(name)
      else state.bucket.put(name, { bytes, ...rest })
    },
    changeKeys(next) {
      const { expiredAccessKeys, keys: last } = state.gate
      state.gate = { region, keys: next, expiredAccessKeys: new Set([...expiredAccessKeys, last.accessKey]) }
    },
    moveClock(byMs) {
      state.clockOffsetMs += byMs
    },
    stop: () => server.stop(true),
  }
}

function now(state: StubState): number {
  return Date.now() + state.clockOffsetMs
}

async function answer(state: StubState, request: Request): Promise<Response> {
  const { pathname, search, host } = new URL(request.url)
  const target = pathname + search
  const entry = { method: request.method, target, headers: Object.fromEntries(request.headers) }
  let parsed: S3Target | undefined
  let response: Response
  try {
    parsed = parse(request.method, request.headers.get('host') ?? host, target)
    response = await settle(state, request, target, parsed)
  } catch (error) {
    if (!(error instanceof S3Refusal)) console.error('the S3 stub failed', error)
    const refusal = error instanceof S3Refusal ? error : new S3Refusal(500, 'InternalError', 'The stub failed.')
    response = refuse(refusal, request.method, target)
  }
  state.log.push({ ...entry, operation: parsed?.operation, status: response.status })
  response.headers.set('date', new Date(now(state)).toUTCString())
  response.headers.set('x-amz-request-id', String(state.log.length))
  response.headers.set('server', 'S3Stub')
  return response
}

function parse(method: string, host: string, target: string): S3Target {
  try {
    return parseS3Target(method, host, target)
  } catch {
    throw new S3Refusal(400, 'InvalidURI')
  }
}

async function settle(state: StubState, request: Request, target: string, parsed: S3Target): Promise<Response> {
  const { method, headers } = request
  if (method === 'PUT' && !headers.has('content-length')) throw new S3Refusal(411, 'MissingContentLength')
  // A body that never arrives completely has no client waiting for an answer; it must have no effect.
  const body = await request.bytes().catch((cause) => {
    throw new S3Refusal(400, 'IncompleteBody', `The body broke off: ${String(cause)}`)
  })
  await checkSignature({ method, target, headers }, { ...state.gate, nowMs: now(state) })
  checkBody(headers, body)
  if (parsed.bucket !== state.bucketName) throw new S3Refusal(404, 'NoSuchBucket')
  if (parsed.operation === undefined) throw new S3Refusal(405, 'MethodNotAllowed')
  return answerCall(state.bucket, parsed.operation, {
    ...parsed,
    headers,
    body,
    nowMs: now(state),
    pageSize: state.options.pageSize ?? 1_000,
    mustEncrypt: state.options.mustEncrypt ?? false,
  })
}

function refuse({ status, code, message, headers }: S3Refusal, method: string, target: string): Response {
  const [Resource = ''] = target.split('?')
  const text = writeXml('Error', { Code: code, Message: message, Resource, RequestId: 'stub' })
  return new Response(method === 'HEAD' ? null : text, {
    status,
    headers: { 'content-type': 'application/xml', ...headers },
  })
}
