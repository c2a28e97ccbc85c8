import { isAddress } from '../../lib/ip-addresses.ts'

export type JsonObject = Readonly<Record<string, unknown>>

export interface JsonResponse {
  readonly status: number
  /** Read only if the status is 200. */
  readonly body: JsonObject | undefined
}

interface JsonRequest {
  readonly timeoutMs: number
  readonly headers?: Readonly<Record<string, string>>
  /** Makes the request a POST. */
  readonly posted?: JsonObject
  /** Sent as `X-Forwarded-For`, so that a service that trusts this proxy counts failures by client. */
  readonly clientAddress?: string | undefined
}

/**
 * The service gave no answer, or no usable one. The message never quotes the HTTP client, the parser or the answer, because
 * they may contain the credential.
 */
export class ServiceFault extends Error {
  override readonly name = 'ServiceFault'
}

const bytesMax = 64 * 1024

/** Nothing was sent yet, so a second attempt is safe. It may use another address of the host. */
const connectFaults: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Requests a JSON object. The time limit covers the body too. Rejects with nothing but `ServiceFault`. */
export async function requestJson(
  url: string,
  { timeoutMs, headers, posted, clientAddress }: JsonRequest,
): Promise<JsonResponse> {
  try {
    const response = await connectAndFetch(url, {
      headers: {
        accept: 'application/json',
        ...headers,
        ...(clientAddress !== undefined && isAddress(clientAddress) && { 'x-forwarded-for': clientAddress }),
        ...(posted && { 'content-type': 'application/json' }),
      },
      ...(posted && { method: 'POST', body: JSON.stringify(posted) }),
      // A redirect would send the credential to another address.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const { status } = response
    if (status === 200) return { status, body: parseObject(await readBody(response)) }
    await response.body?.cancel()
    return { status, body: undefined }
  } catch (error) {
    throw error instanceof ServiceFault ? error : new ServiceFault(`no answer (${nameOf(error)})`)
  }
}

async function connectAndFetch(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init)
  } catch (error) {
    if (!connectFaults.has(nameOf(error))) throw error
    return fetch(url, init)
  }
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

async function readBody({ body }: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    if (length > bytesMax) throw new ServiceFault(`an answer of more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function parseObject(bytes: Uint8Array): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch {
    throw new ServiceFault('an answer that is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ServiceFault('an answer that is no JSON object')
  }
  return value as JsonObject
}
