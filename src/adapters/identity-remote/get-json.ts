import { isAddress } from '../../lib/ip-addresses.ts'

export type JsonObject = Readonly<Record<string, unknown>>

export interface JsonAnswer {
  readonly status: number
  /** Read only where the status is 200. */
  readonly body: JsonObject | undefined
}

/**
 * A service did not answer, or not in a way that tells anything. Says why in words of ours alone: the HTTP client's
 * errors, the parser's, and pages that show what they were asked may hold the credential.
 */
export class ServiceFault extends Error {
  override readonly name = 'ServiceFault'
}

const bytesMax = 64 * 1024

/** Nothing was sent, so nothing can be done twice: a second try may meet another of the name's addresses. */
const connectFaults: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Gets a JSON object, or posts one to get one, within a time that covers the body too; rejects with `ServiceFault` alone. */
export async function getJson(
  url: string,
  headers: Readonly<Record<string, string>>,
  timeoutMs: number,
  posted?: JsonObject,
): Promise<JsonAnswer> {
  try {
    const response = await connectAndGet(url, {
      headers: { accept: 'application/json', ...headers, ...(posted && { 'content-type': 'application/json' }) },
      ...(posted && { method: 'POST', body: JSON.stringify(posted) }),
      // Another address must not get the credential.
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

/** Names the client, so that a service that trusts us as its proxy counts failures by client. */
export function forwardedFor(address: string | undefined): Record<string, string> {
  return address !== undefined && isAddress(address) ? { 'x-forwarded-for': address } : {}
}

async function connectAndGet(url: string, init: RequestInit): Promise<Response> {
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
